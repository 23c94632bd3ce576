"""What users write, as checked values: sources, durations, YAML; every error names file and line. No Spark, no lake."""
