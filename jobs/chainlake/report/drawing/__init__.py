"""Charts as Vega-Lite specifications: values in, specifications out. All they know about the lake is what a match is.

``states`` defines how the states of days look.
"""
