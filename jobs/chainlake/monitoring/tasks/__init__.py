"""What one task of the monitor step does: the events it reads, and the rows it returns. The room above decides
which tasks there are."""
