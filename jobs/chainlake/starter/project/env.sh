# Makes Chainlake read this project's definitions, and write only into this folder; source this file from the folder.
export CHAINLAKE_CONFIG="$PWD/config" CHAINLAKE_HOME="$PWD/.chainlake"
