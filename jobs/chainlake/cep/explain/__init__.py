"""What a pattern means and where a search loses candidates, for people."""
