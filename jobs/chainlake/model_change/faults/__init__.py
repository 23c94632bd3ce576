"""Which of many machines of one kind behaves unlike the others, and in which counters."""
