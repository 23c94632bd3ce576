"""The port through which steps read and change the lake's data tables, and its two back ends.

No code outside asks which back end it has; what only one back end needs stays in its own file.
"""
