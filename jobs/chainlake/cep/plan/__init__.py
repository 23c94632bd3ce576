"""The steps of a search: the order in which names are bound, and keys that divide the events."""
