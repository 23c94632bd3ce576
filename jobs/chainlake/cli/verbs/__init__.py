"""One module per verb: HELP, EXAMPLE, add_arguments(parser), run(args) -> exit code."""
