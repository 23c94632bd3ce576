"""Compiles source to machine code: once per shape, kept on disk, shared by all processes of the machine.

A kernel's file is named by the hash of its source, so equal plans of any pattern, day or partition share it. Two
processes that meet a new shape at the same time both write the same bytes, each by an atomic rename; Numba does the
same with the machine code beside it. The file's time is fixed, since Numba takes code for stale if its source is newer.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import importlib.util
import os
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from chainlake.cep.search.allocator import keep_freed_memory
from chainlake.env.own_folders import NotWritable
from chainlake.env.private import marked_folder
from chainlake.paths import Home

#: Raised by hand when kernels must not be shared with older ones of the same source.
CODE_VERSION = 1

Kernel = Callable[..., int]
#: For a kernel that has no constants, or no state.
NOTHING = np.zeros(1, np.int64)


def folder() -> Path:
    """Where kernels are kept: one folder for each version of Numba; the version of NumPy does not matter."""
    from importlib.metadata import version

    return Home.from_env().cache / "kernels" / f"{CODE_VERSION}-numba{version('numba')}"


def known(source: str) -> bool:
    """Whether the machine code of ``source`` is loaded or on disk."""
    name = _name(source)
    return name in _loaded or any((folder() / "__pycache__").glob(f"{name}.kernel-*.nbc"))


def loaded() -> bool:
    """Whether Numba, whose import takes about half a second, has been imported."""
    return "numba" in sys.modules


_DAY_S = 86_400

_loaded: dict[str, Kernel] = {}
#: How many kernels a process keeps; a pattern has one or two, so only a process that runs for ever needs more.
_MOST_LOADED = 1_000


def load(source: str) -> Kernel:
    """The compiled function ``kernel`` of ``source``.

    If the cache folder cannot be used, it is compiled for this process only, with one warning.
    """
    name = _name(source)
    if name not in _loaded:
        if not _loaded:
            keep_freed_memory()
        try:
            _loaded[name] = _cached(name, source)
        except (OSError, RuntimeError, NotWritable) as error:
            # Numba raises RuntimeError if it finds no place for its cache; any other cause would raise it again below.
            _warn_once(folder(), error)
            space: dict[str, Any] = {}
            exec(compile(source, name, "exec"), space)
            _loaded[name] = _compiled(space["kernel"], cache=False)
        if len(_loaded) > _MOST_LOADED:
            oldest = next(iter(_loaded))
            del _loaded[oldest]
            sys.modules.pop(oldest, None)
    return _loaded[name]


def _cached(name: str, source: str) -> Kernel:
    """The function, from the machine code on disk if there is some; if that cannot be read, it is made again."""
    path = _written(name, source)
    _require_own(path.parent)
    try:
        found = _compiled(_module(name, path).kernel, cache=True)
        _note_use(name, path.parent)
        return found
    except Exception:  # a truncated file can cause any error; any other cause raises the same again
        for spoilt in (path.parent / "__pycache__").glob(f"{name}.*"):
            spoilt.unlink(missing_ok=True)
        return _compiled(_module(name, _written(name, source)).kernel, cache=True)


def _require_own(place: Path) -> None:
    """Check that no other user can have put machine code there, which would be run as ours.

    Raises:
        OSError: the folder is another user's, or others may write to it.
    """
    for part in (place, place / "__pycache__"):
        if part.exists():
            state = part.stat()
            if state.st_uid not in (0, os.geteuid()) or state.st_mode & 0o002:
                raise OSError(f"other users can write to {part}")


def _note_use(name: str, place: Path) -> None:
    """Set the time of the machine code, which tells maintenance when it was last used; a cache may be read-only."""
    with contextlib.suppress(OSError):
        for path in (place / "__pycache__").glob(f"{name}.*.nbi"):
            if time.time() - path.stat().st_mtime > _DAY_S:
                os.utime(path)


_warned: set[Path] = set()


def _warn_once(place: Path, error: Exception) -> None:
    if place not in _warned:
        _warned.add(place)
        warnings.warn(
            f"compiled kernels cannot be kept in {place}, so every process compiles its own: {error}. "
            "Set CHAINLAKE_CACHE to a folder that you can write to.",
            RuntimeWarning,
            stacklevel=3,
        )


def _compiled(function: Any, *, cache: bool) -> Kernel:
    numba: Any = importlib.import_module("numba")  # it has no types
    types, pointer = numba.types, numba.types.CPointer
    kinds = [types.float64, types.int64, types.uint8, types.int32]
    signature = types.int64(
        *(pointer(pointer(kind)) for kind in kinds), pointer(types.float64), pointer(types.int64),
        pointer(types.int64),
    )  # fmt: skip
    compiled = numba.cfunc(signature, cache=cache)(function)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_char_p] * 4, *[ctypes.c_void_p] * 3)
    return _Call(prototype(compiled.address), compiled)


@dataclass(frozen=True)
class _Call:
    """Calls a compiled function with arrays.

    Args:
        function: its address, callable.
        compiled: the object that must live as long.
    """

    function: Callable[..., int]
    compiled: object

    def __call__(
        self,
        floats: Sequence[np.ndarray],
        ints: Sequence[np.ndarray],
        bools: Sequence[np.ndarray],
        shorts: Sequence[np.ndarray],
        *others: np.ndarray,
    ) -> int:
        """Call it with four tables of arrays, the constants (doubles, whole numbers) and the state."""
        tables = (_pointers(floats), _pointers(ints), _pointers(bools), _pointers(shorts))
        return self.function(*tables, *[_address(array) for array in others])


_NO_POINTERS = b"\0" * 8


def _pointers(arrays: Sequence[np.ndarray]) -> bytes:
    # Packed as bytes in the machine's own order, since a ctypes table takes several times as long to make.
    return struct.pack(f"{len(arrays)}N", *[_address(array) for array in arrays]) if arrays else _NO_POINTERS


def _address(array: np.ndarray) -> int:
    # Arrow gives the address in a third of the time that NumPy takes, which counts if a call has little to do.
    found: int = pa.py_buffer(array).address
    return found


@lru_cache(_MOST_LOADED)
def _name(source: str) -> str:
    return "chainlake_kernel_" + hashlib.blake2b(source.encode(), digest_size=16).hexdigest()


def _written(name: str, source: str) -> Path:
    path = folder() / f"{name}.py"
    if not path.exists() or path.read_bytes() != source.encode():
        marked_folder(path.parent)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(source)
        os.utime(temporary, (0, 0))
        os.replace(temporary, path)
    return path


def _module(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Numba writes the module's name beside the machine code, and looks the module up when it reads the code.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
