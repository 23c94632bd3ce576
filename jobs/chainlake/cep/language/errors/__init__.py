"""What is wrong with the text of a pattern: named errors that point into it; of its grammar: in ``parsing``."""
