"""The machine: checks that say in one sentence what is missing and what to do, set-up, child processes, ports. Standard library only."""
