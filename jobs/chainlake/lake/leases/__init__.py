"""Locks that need no shared disk: leases in the store that holds the lake, or locks of a PostgreSQL database."""
