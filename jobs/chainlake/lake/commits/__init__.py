"""Publishing, how a table takes another's place, and the feed of changes; the commits are those of lake/store."""
