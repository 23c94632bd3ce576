"""Child processes, how a process ends, and drivers that are kept warm."""
