"""Window sums, least squares, and the state that carries them forward."""
