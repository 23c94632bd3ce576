"""What users write, as checked values: sources, durations, YAML. Every error names file and line. No Spark, no lake."""
