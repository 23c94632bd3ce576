"""What all steps are built from."""
