"""The code of functions that patterns declare; it can only be in the configuration's folder ``functions/``.

Checking a pattern runs none of it. What runs later is the text that was read then: it travels with the pattern to every
process that searches, so all of them run the code that the pattern's hash was made from, whatever is saved in the
meantime.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from chainlake.catalog.errors import NoCode
from chainlake.cep.language.declared.function import MOST_VALUES, Code, Declared
from chainlake.cep.language.errors.front_matter import KeyPlace
from chainlake.cep.language.front_matter import read_front_matter
from chainlake.cep.language.source_text import SourceText
from chainlake.digests import text_digest
from chainlake.paths import Home

#: Functions made in this process, by the digest of their code, their module and their name.
_MADE: dict[tuple[str, str, str], Callable[..., Any]] = {}
#: One lock per function, since running a file may never end.
_MAKING: dict[tuple[str, str, str], threading.Lock] = {}


@dataclass(frozen=True)
class Module:
    """A file of functions.

    Args:
        name: its name without ``.py``.
        path: where it was read, for tracebacks.
        text: its content.
    """

    name: str
    path: str = field(compare=False)
    text: str = field(repr=False)


@dataclass(frozen=True)
class FileFunction:
    """A function in a file, with all files that it imports; it is made on its first call in a process.

    Args:
        function: its name.
        modules: each after those that it imports; the function's own is the last.
    """

    function: str
    modules: tuple[Module, ...]

    @property
    def digest(self) -> str:
        """A digest that changes with the text of any of the files."""
        return text_digest("\n".join(f"{one.name} {len(one.text)}\n{one.text}" for one in self.modules))

    def __call__(self, *columns: Any) -> Any:
        key = self.digest, self.modules[-1].name, self.function
        with _MAKING.setdefault(key, threading.Lock()):
            made = _MADE.get(key)
            if made is None:
                made = _MADE[key] = self._made(key[0])
        return made(*columns)

    def _made(self, digest: str) -> Callable[..., Any]:
        """Make the function in its own package, because another version of a file may be in use at the same time."""
        package = ModuleType(f"chainlake_functions_{digest[:16]}")
        package.__path__ = []
        sys.modules[package.__name__] = package
        for one in self.modules:
            module = ModuleType(f"{package.__name__}.{one.name}")
            module.__file__, module.__package__ = one.path, package.__name__
            sys.modules[module.__name__] = module
            exec(compile(one.text, one.path, "exec"), module.__dict__)  # noqa: S102 - what the folder is for
            setattr(package, one.name, module)
        found: Callable[..., Any] = getattr(sys.modules[f"{package.__name__}.{self.modules[-1].name}"], self.function)
        return found


def codes_of(home: Home, text: str, file: str | None = None) -> dict[str, Code]:
    """The code of the functions that a pattern's front matter declares, by name; none of it is run.

    Args:
        home: the installation, which has the configuration.
        text: the pattern's text.
        file: the pattern's file, for errors.

    Raises:
        DefinitionError: the front matter is broken, or a function that it declares has no usable code; the error has
            the place.
    """
    source = SourceText(text, file)
    front, _ = read_front_matter(source)
    folder = home.config / "functions"
    found = {}
    for entry in front.functions.values():
        try:
            found[entry.name] = _code(folder, entry)
        except NoCode as error:
            raise error.declared(KeyPlace(source, entry.at, "functions")) from None
    return found


def _code(folder: Path, entry: Declared) -> Code:
    modules: dict[str, Module] = {}
    tree = _gathered(folder, entry.module, modules, ())
    defined = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    if entry.function not in defined:
        public = [name for name in defined if not name.startswith("_")]
        raise NoCode.undefined(modules[entry.module].path, entry.function, public)
    function = FileFunction(entry.function, tuple(modules.values()))
    return Code(function, function.digest, _takes(defined[entry.function]))


def _gathered(folder: Path, name: str, modules: dict[str, Module], on_the_way: tuple[str, ...]) -> ast.Module:
    """Read a file and, before it, those that it imports."""
    if name in on_the_way:
        raise NoCode.circle(on_the_way)
    module = _read(folder, name)
    try:
        tree = ast.parse(module.text, module.path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # the last two: nested too deeply
        raise NoCode.no_python(module.path, error) from None
    for other in _imported(tree, module):
        if other not in modules:
            _gathered(folder, other, modules, (*on_the_way, name))
    modules[name] = module
    return tree


def _read(folder: Path, name: str) -> Module:
    path = folder / f"{name}.py"
    if not path.is_file():
        there = [one.stem for one in sorted(folder.glob("*.py"))] if folder.is_dir() else []
        raise NoCode.no_file(path, there)
    if not path.resolve().is_relative_to(folder.resolve()):
        raise NoCode.link(path)
    try:
        return Module(name, str(path), path.read_bytes().decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise NoCode.unreadable(path, error) from None


def _imported(tree: ast.Module, module: Module) -> Iterator[str]:
    """The other files of the folder that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            if node.level > 1 or "." in (node.module or ""):
                raise NoCode.outside(module.path, node.lineno)
            yield from [node.module] if node.module else [alias.name for alias in node.names]
            continue
        named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        named += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if any(one.partition(".")[0] == "chainlake_functions" for one in named):
            raise NoCode.no_package(module.path)


def _takes(function: ast.FunctionDef) -> tuple[int, int]:
    """The least and the most values that a function takes."""
    given = function.args
    if any(default is None for default in given.kw_defaults):
        raise NoCode.by_name(function.name)
    most = len(given.posonlyargs) + len(given.args)
    return max(1, most - len(given.defaults)), MOST_VALUES if given.vararg else most
