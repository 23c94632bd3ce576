"""Locks that need no shared disk: leases in the store that the lake lies in, or locks of a PostgreSQL database."""
