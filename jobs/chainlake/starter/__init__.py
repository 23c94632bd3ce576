"""Projects for users: source, pattern, model, sample, tests and CI workflow, made by ``chainlake init``."""
