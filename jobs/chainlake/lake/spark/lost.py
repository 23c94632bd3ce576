"""Errors for Spark processes that died at work; Spark itself reports only a Java stack trace."""

from __future__ import annotations

from chainlake.errors import InfrastructureError

#: What Spark says about a Python worker that is gone: after it began to work, and before.
_WORKER = ("Python worker exited unexpectedly", "Python worker failed to connect back")


class ProcessLost(InfrastructureError):
    """A Spark process ended in the middle of its work; mostly it was killed for lack of memory."""

    @classmethod
    def of(cls, error: Exception) -> ProcessLost | None:
        """Turn an error of Spark or Py4J into one that names the process; ``None`` if no process was lost.

        Args:
            error: what a call of Spark raised.
        """
        from py4j.protocol import Py4JError, Py4JJavaError

        if any(words in str(error) for words in _WORKER):
            return cls._named("a Python worker of Spark")
        # A living JVM reports a Java error; all others come from a broken connection.
        if isinstance(error, Py4JError | EOFError | ConnectionError) and not isinstance(error, Py4JJavaError):
            return cls._named("Spark's JVM")
        return None

    @classmethod
    def _named(cls, process: str) -> ProcessLost:
        return cls(
            f"{process} was killed or died while it worked; none of its work is published",
            hint=(
                "Run this again. If that happens again, the machine is short of memory: see its log, or give it less "
                "to do at once."
            ),
        )


class NotStarted(InfrastructureError):
    """Spark, or the archive that makes its start fast, is not available."""

    @classmethod
    def of(cls, error: Exception) -> NotStarted:
        """For Spark itself and the error it raised."""
        return cls(
            f"Spark could not be started: {str(error).strip().splitlines()[0]}",
            hint="What Java printed above says why; Java 17 or 21 must be on PATH or in JAVA_HOME.",
        )

    @classmethod
    def no_archive(cls, last: str) -> NotStarted:
        """For the archive of its classes; ``last`` is the last line printed by the process that should make it."""
        return cls(f"the class archive could not be made: {last}", hint="It is not needed.")
