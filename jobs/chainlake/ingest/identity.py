"""Types and keys as events have them, whether a file gives them in its rows or in its path."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from chainlake.cep.values.arrow import NO_TEXT


def identity(texts: pa.Array, case: str | None) -> pa.Array:
    """Strings without surrounding white space; null if nothing is left. "NA" is kept, since it can be a name.

    Args:
        texts: strings as delivered.
        case: ``upper``, ``lower`` or ``None`` to leave them as they are.
    """
    stripped = pc.utf8_trim_whitespace(texts)
    return cased(pc.if_else(pc.equal(stripped, ""), NO_TEXT, stripped), case)


def cased(texts: pa.Array, case: str | None) -> pa.Array:
    """Strings in upper case, in lower case, or unchanged; ``case`` as for :func:`identity`."""
    return pc.utf8_upper(texts) if case == "upper" else pc.utf8_lower(texts) if case == "lower" else texts
