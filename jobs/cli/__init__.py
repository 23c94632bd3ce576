"""One module per verb of ``python -m jobs``: HELP, EXAMPLE, add_arguments(parser), run(args) -> exit code."""
