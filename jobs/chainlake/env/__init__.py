"""The machine: checks that each say in one sentence what is missing; child processes, ports."""
