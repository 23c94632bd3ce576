"""Functions that a pattern declares in its front matter (docs/language.md#functions-of-your-own)."""
