"""Publishing, how a table takes another's place, and the change feed; ``lake/store`` makes the commits."""
