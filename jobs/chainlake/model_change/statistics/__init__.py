"""Sums of windows, least squares, and the state that carries them on."""
