"""Files to raw rows, raw rows to events (design §3). Pure parts first; Spark only in ``resolve`` and ``parsing``."""

#: Bumped by hand when the same bytes and the same source definition can give other rows than before.
PARSER_VERSION = 4
