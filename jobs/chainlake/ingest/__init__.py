"""Files to raw rows, raw rows to events. What a task does knows neither Spark nor a JVM."""
