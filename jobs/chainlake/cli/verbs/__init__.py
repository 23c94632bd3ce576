"""One module per verb: HELP, EXAMPLE, add_arguments(parser), run(args) -> exit code.

A verb's room is the one whose ``__init__`` describes what the verb works on.
"""
