"""Episodes of a lake: made from the published matches, day by day, right after them. This room decides which days are
made, and publishes them; ``cep/episodes`` says what an episode is and when it is finished.
"""
