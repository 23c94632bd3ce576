"""What is wrong with the text of a pattern: named errors that point into it; those of grammar are in ``parsing``."""
