"""Files to raw rows, raw rows to events. The work of a task needs neither Spark nor a JVM."""
