"""The matching engine: event patterns over tables of events (docs/semantics.md, docs/automata.md).

Its public names are those of ``chainlake``; nothing is imported here, since code that needs one room of the engine
would then import all of them.
"""
