"""What DAG files import: DAGs, their tasks and names. It is light enough for every parse; no Spark, no Delta."""
