"""Work on a whole lake: long stretches of days, repair, retirement, maintenance."""
