"""What is found in a landing folder: whatever one file does, all others are found; no Spark."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import gzip
import io
import os
import random
import shutil
import zipfile
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from chainlake.definitions.source import Source, load_source
from chainlake.ingest.landing import container, discovery
from chainlake.ingest.landing.discovery import Landing, discover
from chainlake.ingest.rows.parse import read_file
from chainlake.ingest.rows.parsed import WAITING, Task
from chainlake.paths import Home
from chainlake.storage.local import LocalStorage

NOW = datetime(2025, 6, 1, tzinfo=UTC)
YAML = """
key: ticker
type: Bar
attributes:
  price: {type: double}
path: '(?P<date>\\d{8})(?:_r(?P<revision>\\d+))?'
formats:
  - time: {column: ts, format: iso}
"""
TEXT = "ts,ticker,price\n" + "".join(f"2025-01-01 10:00:{n:02d},A,{n}\n" for n in range(40))


class Place:
    """A landing folder with one good file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "x.yaml").write_text(YAML)
        self.home = Home(root, str(root / "lake"), root, root)
        self.folder = self.home.landing("x")
        self.put("good.csv", TEXT)

    def source(self, more: str = "") -> Source:
        (self.root / "x.yaml").write_text(YAML + more)
        return load_source(self.root / "x.yaml")

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, (1e9, 1e9))
        return path

    def look(self, more: str = "") -> Landing:
        found = discover(self.home, self.source(more), NOW)
        assert found.files["good.csv"].problem == "" and "good.csv" not in found.waiting
        return found

    def counts(self, path: str, landing: Landing) -> dict:
        """What a task counts in a file."""
        return dataclasses.asdict(read_file(self.source(), Task.of(landing.files[path], "load")).counts)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class Failing(io.FileIO):
    """A file whose disk fails after some bytes."""

    left = 0
    code = errno.EIO

    def readinto(self, buffer):
        if self.left <= 0:
            raise OSError(self.code, os.strerror(self.code))
        data = self.read(min(self.left, len(buffer)))
        self.left -= len(data)
        buffer[: len(data)] = data
        return len(data)


def break_disk(monkeypatch: pytest.MonkeyPatch, name: str, after: int, code: int) -> None:
    """Opening ``name`` fails (``after`` < 0), or reading it does after so many bytes."""
    real = LocalStorage.opened

    def opened(self, path):
        if os.path.basename(path) != name:
            return real(self, path)
        if after < 0:
            raise OSError(code, os.strerror(code))
        file = Failing(path, "rb")
        file.left, file.code = after, code
        return file

    monkeypatch.setattr(LocalStorage, "opened", opened)


def zipped(**members: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


#: Of random digits, so that what is packed is longer than a buffer.
_DRAW = random.Random(1)
LONG = "ts,ticker,price\n" + "".join(f"2025-01-01 10:00:00.{n:06d},{_DRAW.random()},1\n" for n in range(30_000))
CONTENTS = {"x.csv": LONG.encode(), "x.csv.gz": gzip.compress(LONG.encode()), "x.zip": zipped(**{"a.csv": LONG})}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOENT])
@pytest.mark.parametrize("after", [-1, 0, 300_000])
def test_a_failing_file_system_is_not_taken_for_damage(place, monkeypatch, name, code, after):
    place.put(name, CONTENTS[name])
    with monkeypatch.context() as patch:
        break_disk(patch, name, after, code)
        found = place.look()
        assert found.waiting == {name: os.strerror(code)} and list(found.files) == ["good.csv"]
        assert not found.settling
    whole = place.look()
    path = "x.zip!a.csv" if name == "x.zip" else name
    assert (whole.waiting, whole.files[path].problem) == ({}, "")
    # The same at the time of parsing: nothing of it counts, and it says on which machine.
    with monkeypatch.context() as patch:
        break_disk(patch, name, after, code)
        told = place.counts(path, whole)
    assert told["outcome"] == WAITING and told["reason"].startswith(f"{os.strerror(code)} (on ")
    assert place.counts(path, whole)["outcome"] == "ok"


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("change", ["cut", "other", "gone", "folder"])
def test_what_was_parsed_is_what_was_listed_or_does_not_count(place, name, change):
    file = place.put(name, CONTENTS[name])
    found = place.look()
    file.unlink()
    if change == "cut":
        place.put(name, CONTENTS[name][: len(CONTENTS[name]) // 2])
    elif change == "other":
        other = LONG.replace(",1\n", ",2\n", 1).encode()
        packed = {"x.csv": other, "x.csv.gz": gzip.compress(other), "x.zip": zipped(**{"a.csv": other.decode()})}
        place.put(name, packed[name])
    elif change == "folder":
        file.mkdir()
    told = place.counts("x.zip!a.csv" if name == "x.zip" else name, found)
    assert told["outcome"] == WAITING, told["reason"]


def test_whatever_looking_at_one_file_raises_the_others_are_found(place, monkeypatch):
    place.put("bad.csv", TEXT + "x")
    real = discovery._contents

    def contents(source, file):
        if file.endswith("/bad.csv"):
            raise RecursionError("too\ndeep")
        return real(source, file)

    monkeypatch.setattr(discovery, "_contents", contents)
    assert place.look().waiting == {"bad.csv": "RecursionError: too deep"}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["x.zip", "x.csv.gz"])
def test_damage_of_any_kind_is_damage(place, name):
    text = LONG[:150_000]
    whole = zipped(**{"a.csv": text}) if name == "x.zip" else gzip.compress(text.encode())
    rng = random.Random(name)
    for round_ in range(30):
        broken = bytearray(whole)
        # Directories of archives stand at the end, headers at the beginning: most tries go there.
        where = rng.choice([range(4, 60), range(len(whole) - 80, len(whole)), range(len(whole))])
        for at in rng.sample(where, rng.choice([1, 2, 8])):
            broken[at] = rng.randrange(256)
        place.put(name, bytes(broken[: rng.choice([len(whole), rng.randrange(5, len(whole))])]))
        os.utime(place.folder / name, (1e9, 1e9 + round_))
        found = place.look()
        assert not found.waiting, found.waiting
        for path in set(found.files) - {"good.csv"}:
            assert found.files[path].problem in ("", "damaged", "damaged_archive", "no_format")
            assert place.counts(path, found)["outcome"] in ("ok", "empty", "damaged", "damaged_archive", "no_format")


def test_an_archive_with_a_password_or_nothing_in_it_is_said(place):
    data = bytearray(zipped(**{"a.csv": TEXT}))
    # The flag of encryption, in the local header and in the directory.
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    place.put("locked.zip", bytes(data))
    place.put("none.zip", zipped())
    found = place.look()
    assert (found.files["locked.zip!a.csv"].problem, found.files["none.zip"].problem) == ("damaged", "no_format")
    assert "encrypted" in found.files["locked.zip!a.csv"].detail
    told = place.counts("locked.zip!a.csv", found)
    assert (told["outcome"], told["rows_read"]) == ("damaged", 0)
    assert place.counts("none.zip", found)["reason"] == "the archive has no member that a format takes"


def test_folders_that_cannot_be_listed_wait(place, monkeypatch):
    place.put("in/a.csv", TEXT)
    place.put("other/b.csv", TEXT)
    real = os.scandir

    def scandir(path):
        if str(path).endswith("/in"):
            raise OSError(errno.ESTALE, "Stale file handle")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = place.look()
    assert found.waiting == {"in": "the folder cannot be listed: Stale file handle"}
    assert "other/b.csv" in found.files and found.waits("in/a.csv") and not found.waits("index.csv")


def test_a_landing_folder_that_cannot_be_listed_is_not_an_empty_one(place, monkeypatch):
    def scandir(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", scandir)
    found = discover(place.home, place.source(), NOW)
    assert found.files == {} and found.waits("good.csv") and found.why("good.csv").endswith("Permission denied")


def test_unfinished_files_that_vanish_are_nothing_to_wait_for(place, monkeypatch):
    place.put("x.csv.part", "half")
    place.put("y.csv", TEXT)
    real = os.scandir

    def scandir(path):
        listed = list(real(path))
        for name in ("x.csv.part", "y.csv"):
            (place.folder / name).unlink(missing_ok=True)

        return contextlib.nullcontext(listed)

    monkeypatch.setattr(os, "scandir", scandir)
    assert place.look().waiting == {"y.csv": "No such file or directory"}


def test_links_lead_on_within_landing_and_out_of_it_only_if_allowed(place, tmp_path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "out.csv").write_text(TEXT)
    place.put(".store/2025/kept.csv", TEXT)
    place.put("real/r.csv", TEXT)
    for name, target in {
        "a.csv": outside / "out.csv", "folder": outside, "b.csv": place.folder / "good.csv",
        "shown": place.folder / ".store" / "2025", "again": place.folder / "real", "up": place.folder,
        "broken.csv": tmp_path / "nothing",
    }.items():  # fmt: skip
        (place.folder / name).symlink_to(target)
    found = place.look()
    assert {path: one.problem for path, one in found.files.items()} == {
        "a.csv": "link", "b.csv": "", "folder": "link", "good.csv": "", "real/r.csv": "", "shown/kept.csv": "",
        "up": "link",
    }  # fmt: skip
    assert found.waiting == {"broken.csv": "No such file or directory"}
    assert found.files["a.csv"].detail == f"a link out of the landing folder, to {outside / 'out.csv'}"
    assert place.counts("a.csv", found)["rows_read"] == 0
    allowed = place.look("links: follow\n")
    assert allowed.files["a.csv"].problem == allowed.files["folder/out.csv"].problem == ""
    assert allowed.files["a.csv"].file_id != found.files["a.csv"].file_id
    # A landing folder that is a link itself is where the files are.
    moved = place.folder.rename(tmp_path / "mount")
    place.folder.symlink_to(moved)
    assert "real/r.csv" in place.look().files


def test_names_that_are_no_text_are_kept_apart_and_can_be_stored(place):
    for raw in (b"caf\xe9.csv", b"caf\xe8.csv", b"line\nend.csv"):
        with open(os.fsencode(place.folder) + b"/" + raw, "wb") as stream:
            stream.write(TEXT.encode())
    # One whose plain name looks like the escaped one: what cannot be told apart is not read.
    place.put("caf\\xe8.csv", TEXT)
    found = place.look()
    assert {path: one.problem for path, one in found.files.items()} == {
        "caf\\xe9.csv": "", "caf\\xe8.csv": "doubled_path", "line\nend.csv": "", "good.csv": "",
    }  # fmt: skip
    for path in found.files:
        path.encode()
    assert place.counts("caf\\xe9.csv", found)["rows_raw"] == 40
    assert place.look().files == found.files


def test_members_of_one_name_and_files_named_like_members(place):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        for text in (TEXT, TEXT + "2025-01-01,B,1\n"):
            archive.writestr("twice.csv", text)
        archive.writestr("once.csv", TEXT)
        archive.writestr("b.csv", TEXT)
    place.put("a.zip", out.getvalue())
    place.put("a.zip!b.csv", TEXT)
    found = place.look()
    assert {path: one.problem for path, one in found.files.items()} == {
        "a.zip!b.csv": "doubled_path", "a.zip!once.csv": "", "a.zip!twice.csv": "doubled_path", "good.csv": "",
    }  # fmt: skip
    assert found.files["a.zip!twice.csv"].detail == "2 members of the archive have this name"
    assert place.counts("a.zip!b.csv", found)["rows_read"] == 0
    (place.folder / "a.zip!b.csv").unlink()
    alone = place.look()
    assert alone.files["a.zip!b.csv"].problem == ""
    assert alone.files["a.zip!b.csv"].file_id != found.files["a.zip!b.csv"].file_id


def test_members_whose_names_are_said_to_be_text_and_are_not(place):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("caf\xe9.csv", "plain.csv", "20250101_\xe9\xe9.csv"):
            archive.writestr(name, TEXT)
    # Their first byte is one that UTF-8 does not have.
    place.put("a.zip", out.getvalue().replace("\xe9".encode(), b"\xff\xfe"))
    found = place.look()
    names = [path for path in found.files if path.startswith("a.zip")]
    assert len(names) == 3 and {found.files[path].problem for path in names} == {""}
    assert [found.files[path].file_date for path in sorted(names)] == [date(2025, 1, 1), None, None]
    for path in names:
        assert place.counts(path, found)["rows_raw"] == 40


def test_what_is_no_file_is_never_opened(place):
    os.mkfifo(place.folder / "pipe.csv")
    assert place.look().files["pipe.csv"].problem == "not_a_file"


def test_a_member_with_a_revision_of_thousands_of_digits_leaves_its_siblings(place):
    long = "20250101_r" + "1" * 5000 + ".csv"
    place.put("x.zip", zipped(**{"20250101_r1.csv": TEXT, long: TEXT, "20250102.csv": TEXT}))
    found = place.look()
    assert not found.waiting and found.files[f"x.zip!{long}"].problem == "bad_path_revision"
    for name in ("20250101_r1.csv", "20250102.csv"):
        assert place.counts(f"x.zip!{name}", found)["rows_raw"] == 40


def test_an_error_of_the_file_system_travels_to_another_process():
    import pickle

    error = container.NotReadable(OSError(errno.ESTALE, "Stale file handle"))
    assert str(pickle.loads(pickle.dumps(error))) == "Stale file handle"


def test_a_landing_folder_that_goes_is_waited_for(place):
    """A disk that is not mounted; of a source of which nothing has landed yet it is just not made."""
    shutil.rmtree(place.folder)
    assert discover(place.home, place.source(), NOW).waiting == {}
    assert "the folder is missing" in discover(place.home, place.source(), NOW, known=True).waiting["."]
    place.folder.mkdir()
    assert discover(place.home, place.source(), NOW, known=True).waiting == {}


def test_what_a_run_has_looked_into_is_looked_into_again_only_if_it_has_changed(place, monkeypatch):
    """Files that have just landed, whose times do not tell whether they will change again."""
    for name in ("20250102.csv", "20250103.csv"):
        (place.folder / name).write_text(TEXT)
    before, opened = place.look(), []
    real = discovery.open_bytes
    monkeypatch.setattr(discovery, "open_bytes", lambda file, member: opened.append(file) or real(file, member))
    (place.folder / "20250103.csv").write_text(TEXT.replace("A", "B") + "\n")
    (place.folder / "20250104.csv").write_text(TEXT)
    found = discover(place.home, place.source(), NOW, before=before)
    assert sorted(Path(file).name for file in opened) == ["20250103.csv", "20250104.csv"]
    assert found == discover(place.home, place.source(), NOW)
    assert found.files["20250103.csv"].checksum != before.files["20250103.csv"].checksum
    # It cannot be told from what it was; who reads its rows notices.
    stamp = os.stat(place.folder / "20250102.csv")
    other = TEXT.replace("A", "B")
    (place.folder / "20250102.csv").write_text(other)
    os.utime(place.folder / "20250102.csv", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert place.counts("20250102.csv", before)["outcome"] == WAITING
