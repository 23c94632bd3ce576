"""Charts as Vega-Lite specifications: values in, specifications out, and nothing of a lake but what a match is; and how
the states of days look (``states``).
"""
