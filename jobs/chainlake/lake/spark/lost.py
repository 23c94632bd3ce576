"""Processes of Spark that died at work, told as what they are: Spark's own words for it are a Java stack trace."""

from __future__ import annotations

from chainlake.errors import InfrastructureError

#: What Spark says of a Python worker that is gone, before and after it began to work.
_WORKER = ("Python worker exited unexpectedly", "Python worker failed to connect back")


class ProcessLost(InfrastructureError):
    """A process of Spark ended in the middle of its work: it was killed, mostly for want of memory."""

    @classmethod
    def of(cls, error: Exception) -> ProcessLost | None:
        """The error of Spark or of Py4J as one that names the process; ``None`` if no process was lost.

        Args:
            error: what a call of Spark raised.
        """
        from py4j.protocol import Py4JError, Py4JJavaError

        if any(words in str(error) for words in _WORKER):
            return cls._named("a Python worker of Spark")
        # The JVM tells a Java error while it is there; all others come from a connection that broke off.
        if isinstance(error, Py4JError | EOFError | ConnectionError) and not isinstance(error, Py4JJavaError):
            return cls._named("Spark's JVM")
        return None

    @classmethod
    def _named(cls, process: str) -> ProcessLost:
        return cls(
            f"{process} was killed or died while it worked; nothing of its work is published",
            hint="Run this again. If it is lost again, the machine is short of memory: see its log, or give it less "
            "to do at a time.",
        )


class NotStarted(InfrastructureError):
    """Spark, or what makes its start fast, could not be had."""

    @classmethod
    def of(cls, error: Exception) -> NotStarted:
        """Spark itself; ``error`` is its own."""
        return cls(
            f"Spark could not be started: {str(error).strip().splitlines()[0]}",
            hint="Java 17 or 21 must be on PATH or in JAVA_HOME.",
        )

    @classmethod
    def no_archive(cls, last: str) -> NotStarted:
        """The archive of its classes; ``last`` is the last line of what should make it."""
        return cls(f"the class archive could not be made: {last}", hint="It is not needed.")
