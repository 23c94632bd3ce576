"""What every step is made of."""
