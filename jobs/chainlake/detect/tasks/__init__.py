"""What runs inside Spark's tasks: read the events of a slice, search them, write matches."""
