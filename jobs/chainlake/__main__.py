"""``python -m chainlake VERB``."""

from chainlake.cli.main import command

if __name__ == "__main__":
    command()
