"""The machine: checks, each with one sentence on what is missing; child processes, ports. Standard library only."""
