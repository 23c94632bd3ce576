"""Table definitions: columns, types, comments, keys and constraints, one file per table or table family."""
