"""Tables looked after: compacted, cleaned, compared, checked."""
