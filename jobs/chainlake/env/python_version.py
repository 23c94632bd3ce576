"""Whether this Python can run Chainlake; any Python from 2.7 on can run this file, so a wrong one is reported."""

import sys

NEEDED = (3, 11)


def check(hint):  # type: (str) -> None
    """End the process with code 5 and a sentence on stderr, unless this is Python 3.11, for which the lock was made.

    Args:
        hint: what to do, a sentence.
    """
    if sys.version_info[:2] != NEEDED:
        found = ".".join(map(str, sys.version_info[:2]))
        message = "chainlake: Python {}.{} is needed and this is {} ({}). {}\n"
        sys.stderr.write(message.format(NEEDED[0], NEEDED[1], found, sys.executable, hint))
        sys.exit(5)


if __name__ == "__main__":
    check("Install Python 3.11, or name it: make PYTHON=/path/to/python3.11 setup")
