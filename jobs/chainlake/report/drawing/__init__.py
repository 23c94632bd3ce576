"""Charts as Vega-Lite specifications: values in, specifications out. Of the lake they know only what a match is.

``states`` says how the states of days look.
"""
