"""Tables looked after: compacted, old versions removed after their retention (``maintain``), compared, checked."""
