"""Spark drivers that stay warm between tasks."""
