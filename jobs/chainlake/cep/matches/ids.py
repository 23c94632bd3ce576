"""Ids of matches: 128-bit BLAKE2b over the pattern's name and the ids of the events bound to every name.

The same digests are made in two ways: by ``hashlib``, match by match, and by machine code over columns, which takes a
tenth of the time where each name has one event and all event ids are equally long, as the lake's are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from chainlake.cep.events.event_ids import PACKED, SIZE, fixed_texts, hex_array, octets_of, texts
from chainlake.cep.search.compiled import machine
from chainlake.cep.values.arrow import int64_array

#: If a process hashes at least this many matches, importing Numba pays; fewer are hashed before it is ready.
WORTH_COMPILING = 100_000
_DIGITS = 2 * SIZE
_BLOCK = 128

#: How many matches this process has been asked for: blocks of matches are small where few are found at a time.
_hashed_so_far = [0]

Single = tuple[str, np.ndarray]
Group = tuple[str, np.ndarray, np.ndarray]


def match_ids(pattern: str, ids: pa.ChunkedArray | pa.Array, names: Sequence[Single | Group]) -> pa.Array:
    """The ids of some matches.

    Args:
        pattern: name of the pattern.
        ids: the event id of each row of the events table, as text or packed (``chainlake.cep.events.event_ids``).
        names: for each bound name, its rows, shape (matches,), or the offsets, shape (matches + 1,), and rows of its
            events.

    Returns:
        32 hex digits per match, an array of strings.
    """
    names = sorted(names, key=lambda one: one[0])
    n = len(names[0][1]) - (len(names[0]) - 2)
    _hashed_so_far[0] += n
    if _hashed_so_far[0] >= WORTH_COMPILING or machine.loaded() and machine.known(_SOURCE):
        whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
        found = (octets_of(whole), 2 * SIZE) if whole.type == PACKED else fixed_texts(whole)
        if found is not None and all(len(one) == 2 for one in names):
            bound = [(one[0], one[1]) for one in names]
            return _compiled(pattern, *found, bound, n, packed=whole.type == PACKED)
    return pa.array(_hashed(pattern, ids, names), pa.string())


def _hashed(pattern: str, ids: pa.ChunkedArray | pa.Array, names: Sequence[Single | Group]) -> list[str]:
    parts: list[list[str]] = []
    for name, *bound in names:
        taken = ids.take(int64_array(bound[-1]))
        found = texts(taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken).to_pylist()
        if len(bound) == 1:
            parts.append([f"{name}\x1f{one}" for one in found])
        else:
            bounds = bound[0].tolist()
            parts.append(["\x1f".join([name, *found[a:b]]) for a, b in zip(bounds[:-1], bounds[1:], strict=True)])
    start = pattern + "\x1e"
    return [
        hashlib.blake2b((start + "\x1e".join(one)).encode(), digest_size=16).hexdigest()
        for one in zip(*parts, strict=True)
    ]


def _compiled(
    pattern: str, octets: np.ndarray, length: int, names: Sequence[Single], n: int, *, packed: bool
) -> pa.Array:
    # The text that is hashed, with space for the ids at ``places``.
    text, places = bytearray(f"{pattern}\x1e".encode()), []
    for number, (name, _) in enumerate(names):
        text += (b"\x1e" if number else b"") + f"{name}\x1f".encode()
        places.append(len(text))
        text += bytes(length)
    room = np.zeros(-(-len(text) // _BLOCK) * _BLOCK, np.uint8)
    room[: len(text)] = np.frombuffer(bytes(text), np.uint8)
    found = np.empty(n * _DIGITS, np.uint8)
    rows = [np.ascontiguousarray(bound, np.int64) for _, bound in names]
    machine.load(_SOURCE)(
        [],
        [room.view(np.int64), np.array(places, np.int64), _STATE, _SIGMA, np.zeros(8, np.int64), *rows],
        [room, octets, found, np.frombuffer(b"0123456789abcdef", np.uint8)],
        [],
        np.zeros(1),
        np.array([n, len(rows), len(text), length, packed], np.int64),
        np.zeros(1, np.int64),
    )
    return hex_array(found, n)


# The tables of BLAKE2b (RFC 7693): the initial state, and the order of the message's words in each round.
_STATE = np.array([
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
], np.uint64).view(np.int64)  # fmt: skip
_ROUNDS = """
0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
14 10 4 8 9 15 13 6 1 12 0 2 11 7 5 3
11 8 12 0 5 2 15 13 10 14 3 6 7 1 9 4
7 9 3 1 13 12 11 14 2 6 5 10 4 0 15 8
9 0 5 7 2 4 10 15 14 1 11 12 6 8 3 13
2 12 6 10 0 11 8 3 4 13 7 5 15 14 1 9
12 5 1 15 14 13 4 10 0 7 6 3 9 2 8 11
13 11 7 14 12 1 3 9 5 0 15 4 8 6 2 10
6 15 14 9 11 3 0 8 12 2 13 7 1 4 10 5
10 2 8 4 7 6 1 5 15 11 9 14 3 12 13 0
0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
14 10 4 8 9 15 13 6 1 12 0 2 11 7 5 3
"""
_SIGMA = np.array(_ROUNDS.split(), np.int64)


def _source() -> str:
    """The code; its 64-bit words are signed numbers, whose sums wrap as those of unsigned ones do."""

    def rotated(a: int, b: int, r: int) -> list[str]:
        # Shifting a signed number right copies its sign bit, which the mask removes.
        return [f"x = v{a} ^ v{b}", f"v{a} = ((x >> {r}) & {(1 << (64 - r)) - 1}) | (x << {64 - r})"]

    mixed: list[str] = []
    columns = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
    diagonals = [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    for number, (a, b, c, d) in enumerate(columns + diagonals):
        for half, (first, second) in enumerate(((32, 24), (16, 63))):
            word = f"room[at + sigma[s + {2 * number + half}]]"
            mixed += [f"v{a} = v{a} + v{b} + {word}", *rotated(d, a, first), f"v{c} = v{c} + v{d}"]
            mixed += rotated(b, c, second)
    states = "\n".join(f"            v{i} = h[{i}]\n            v{i + 8} = state[{i}]" for i in range(8))
    rounds = "\n".join(f"                {line}" for line in mixed)
    folded = "\n".join(f"            h[{i}] = h[{i}] ^ v{i} ^ v{i + 8}" for i in range(8))
    return f"""def kernel(F, I, B, J, kf, ki, st):
    room = I[0]
    places = I[1]
    state = I[2]
    sigma = I[3]
    h = I[4]
    text = B[0]
    ids = B[1]
    found = B[2]
    digits = B[3]
    n = ki[0]
    names = ki[1]
    size = ki[2]
    length = ki[3]
    packed = ki[4]
    for i in range(n):
        for k in range(names):
            to = places[k]
            row = I[5 + k][i] * length
            if packed:
                row = row // 2
                for j in range(length // 2):
                    text[to + 2 * j] = digits[ids[row + j] >> 4]
                    text[to + 2 * j + 1] = digits[ids[row + j] & 15]
            else:
                for j in range(length):
                    text[to + j] = ids[row + j]
        for j in range(8):
            h[j] = state[j]
        h[0] = h[0] ^ 0x01010010
        done = 0
        at = 0
        while done < size:
            done = done + {_BLOCK}
{states}
            if done >= size:
                v12 = v12 ^ size
                v14 = ~v14
            else:
                v12 = v12 ^ done
            for r in range(12):
                s = 16 * r
{rounds}
{folded}
            at = at + {_BLOCK // 8}
        for j in range({_DIGITS // 2}):
            octet = (h[j // 8] >> (8 * (j % 8))) & 255
            found[{_DIGITS} * i + 2 * j] = digits[octet >> 4]
            found[{_DIGITS} * i + 2 * j + 1] = digits[octet & 15]
    return 0
"""


_SOURCE = _source()
