"""One landed file to typed rows, quarantine rows and counts."""
