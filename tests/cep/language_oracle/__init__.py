"""The whole pattern language by its definition: queries as data, their text, their matches, and random ones.

Nothing here shares code or an idea with the engine. ``model`` holds queries, ``text`` writes them in the language and
``reading`` reads such texts back, ``values`` computes conditions, ``matches`` tries everything, ``generate`` draws
queries with histories, and ``against`` compares the product with all that.
"""
