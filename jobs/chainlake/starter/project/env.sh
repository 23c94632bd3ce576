# Chainlake reads the definitions of this project, and writes into it and nowhere else: source this file in it.
export CHAINLAKE_CONFIG="$PWD/config" CHAINLAKE_HOME="$PWD/.chainlake"
