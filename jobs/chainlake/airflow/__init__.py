"""What DAG files import: DAGs, their tasks and names. Light enough for every parse; no Spark, no Delta."""
