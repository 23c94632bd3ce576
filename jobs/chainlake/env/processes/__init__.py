"""Child processes, how a process ends, and drivers that are kept warm. Standard library only."""
