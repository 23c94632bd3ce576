# Makes Chainlake read this project's definitions, and write only into this folder; source this file from the folder.
export CHAINLAKE_CONFIG="$PWD/config" CHAINLAKE_HOME="$PWD/.chainlake"
# The commands below are those of the program that made this project, unless another chainlake is found first.
command -v chainlake >/dev/null || export PATH="$PATH":PROGRAM_FOLDER
