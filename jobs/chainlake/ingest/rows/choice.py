"""Which format of a source a file has, judged by its path and its first bytes, and why the others do not fit it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chainlake.definitions.formats.format import Format
from chainlake.ingest.rows.lines import KEPT, sniff
from chainlake.ingest.rows.text_columns import split_line

#: How many bytes of a file are looked at to choose its format.
HEAD = 1 << 18

#: First bytes of files that hold no lines of text, and what such files are.
_MAGIC = (
    (b"BZh", "compressed with bzip2"),
    (b"\xfd7zXZ\0", "compressed with xz"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"PAR1", "a Parquet file"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel or Word file"),
    (b"%PDF-", "a PDF file"),
)
#: The magic bytes in the first header of a tar archive, and their position.
_TAR, _TAR_AT = b"ustar", 257
_NOT_READ = "it is {}; only text is read, plain or compressed with gzip or zip"
_RETURN = "carriage return"
_NO_HEADER = "it has no header line"

#: Characters that end a line for other programs but not here.
_OTHER_ENDS = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_LAST_ENDS = re.compile(f"{_OTHER_ENDS.pattern}|\0")


@dataclass(frozen=True)
class Unfit:
    """Why a format that names the path of a file does not fit the file.

    Args:
        form: the format.
        swallowed: why lines that it passes over hold rows, in words; empty if they hold none.
        header: the columns of the file; ``None`` if there is no header line, or nobody looked.
    """

    form: Format
    swallowed: str = ""
    header: list[str] | None = None

    @property
    def why(self) -> str:
        """In words."""
        if self.header is None:
            return self.swallowed or _NO_HEADER
        return "; ".join(self.form.misfits(self.header))


@dataclass(frozen=True)
class FormatChoice:
    """The format of a file.

    Args:
        form: the first one that fits path and header, ``None`` if none does.
        columns: the names of the file's columns.
        no_lines: why the file has no lines to read, in words; empty if it has.
        unfit: the formats that name the path and do not fit; with ``no_lines`` too, for they have been looked at.
    """

    form: Format | None
    columns: list[str]
    no_lines: str = ""
    unfit: tuple[Unfit, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether all that the file lacks is a header line."""
        return self.form is None and not self.no_lines and bool(self.unfit) and all(map(_headless, self.unfit))

    @property
    def why(self) -> str:
        """Why no format fits, in words, cut: of formats that name the path each says it."""
        if self.no_lines:
            return self.no_lines
        if self.is_empty:
            return _NO_HEADER
        return "; ".join(f"{one.form.name}: {one.why}" for one in self.unfit)[:KEPT] or "no format's glob fits the path"


def _headless(unfit: Unfit) -> bool:
    return unfit.header is None and not unfit.swallowed


def choose_format(formats: tuple[Format, ...], path: str, head: bytes) -> FormatChoice:
    """The first format whose glob and header fit the file.

    Args:
        formats: of the source, in their order.
        path: of the file, relative to the landing folder.
        head: its first `HEAD` bytes, decompressed.
    """
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR and b"\0" in head[:_TAR_AT]:
        # Its members are texts one after the other, and each may be for another day.
        return FormatChoice(None, [], _NOT_READ.format("a tar archive"))
    unfit: list[Unfit] = []
    for form in formats:
        if not form.fits_path(path):
            continue
        if rows := _swallowed(head, form):
            unfit.append(Unfit(form, rows))
            continue
        header = list(form.listed) if form.listed is not None else _header_of(head, form)
        if header is not None and not form.misfits(header):
            return FormatChoice(form, header)
        unfit.append(Unfit(form, header=header))
    return FormatChoice(None, [], _no_lines(head) if unfit else "", tuple(unfit))


def _header_of(head: bytes, form: Format) -> list[str] | None:
    """The column names in the header line of a file that begins with ``head``; ``None`` if there is no such line."""
    encoding, bom = sniff(head, form.encoding)
    text = head[bom:].decode(encoding, errors="replace")
    lines = text.split("\n", form.skip_lines + 1)
    if len(lines) <= form.skip_lines or not lines[form.skip_lines].strip():
        return None
    return split_line(lines[form.skip_lines].lstrip("\ufeff").rstrip("\r"), form)


def _no_lines(head: bytes) -> str:
    """Why a file that begins with ``head`` has no lines to read, in words; empty if it has."""
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return _NOT_READ.format(what)
    if b"\r" in head and b"\n" not in head:
        return f"its lines end in lone {_RETURN}s, which do not end lines here: convert them to line feeds"
    return ""


def _swallowed(head: bytes, form: Format) -> str:
    """Why a file that begins with ``head`` has rows in a line that is none, in words; empty if it has not.

    What stands in the header line, or in a line that is passed over, is never seen again.
    """
    encoding, bom = sniff(head, form.encoding)
    before = form.lines_before
    lines = head[bom:].decode(encoding, errors="replace").split("\n", before)
    # A NUL is a sign of damage if lines follow; if none do, it may be what ends lines.
    ends = _OTHER_ENDS if any(line.strip() for line in lines[before:]) else _LAST_ENDS
    quoted = re.compile("{0}[^{0}]*{0}".format(re.escape(form.quote))) if form.quote else None
    for number, line in enumerate(lines[:before], 1):
        plain = line.strip() if quoted is None else quoted.sub("", line).strip()
        if other := ends.search(plain.replace(form.delimiter, "")):
            sign = f"a lone {_RETURN}" if other[0] == "\r" else f"the sign U+{ord(other[0]):04X}"
            what = "the header line" if number > form.skip_lines else "a line that 'skip_lines' passes over"
            return f"line {number}, {what}, holds {sign}, which does not end a line here: convert it to a line feed"
    return ""
