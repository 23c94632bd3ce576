"""Work on a whole lake: computing long stretches of days, repair, retirement, maintenance."""
