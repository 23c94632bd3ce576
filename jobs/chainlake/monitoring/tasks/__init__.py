"""What one task of the monitor step does: the events it reads, and the rows it hands back. Which tasks there are is
decided above."""
