"""One module per Spark application: ingest, detect, monitor. Each decides without a JVM whether it has work."""
