"""A handler of SIGTERM that a test leaves behind does not outlive it (tests/conftest.py)."""

from __future__ import annotations

import signal


def test_one_leaves_a_handler() -> None:
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL


def test_the_next_is_mortal() -> None:
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
