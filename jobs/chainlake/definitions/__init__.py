"""What users write about sources, as checked values; every error names file and line. No Spark, no lake."""
