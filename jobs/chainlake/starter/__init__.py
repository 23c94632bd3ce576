"""A project of one's own: source, pattern, model, sample, tests and CI recipe, made by ``chainlake init``."""
