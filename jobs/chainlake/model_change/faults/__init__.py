"""Which of many machines of one kind behaves unlike the others, and in which counters.

* ``config``: reads a file of ``kind: latent_faults``: its keys and their defaults
* ``sign``: the test: directions, scores, probabilities, the sketch
* ``variance``: the reference by which counters are normalised, and when it is renewed
* ``days``: a UTC day of a group: its rows (which counters they name, too), and the state at its end
* ``errors``: what can be wrong in the file
"""
