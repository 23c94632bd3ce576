"""SQL over the published tables without a JVM."""
