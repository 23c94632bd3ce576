"""The port of files: a folder of this machine, and one that is treated as an object store, under the same tests."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pytest

from chainlake.errors import InfrastructureError
from chainlake.paths import Home
from chainlake.storage import objects
from chainlake.storage.errors import StoreFailed, store_error
from chainlake.storage.objects import ObjectStorage
from chainlake.storage.parquet import parquet_dataset, parquet_file, parquet_footer, parquet_rows, parquet_writer
from chainlake.storage.resolve import storage_of
from chainlake.storage.settings import VARIABLES, UnreadableSetting, apply_settings, carried


@pytest.fixture(params=["", "file://"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder; its path holds a space and a letter that is not ASCII."""
    folder = tmp_path / "the ländle"
    folder.mkdir()
    return f"{request.param}{folder}"


def test_files_are_written_listed_and_read(root: str) -> None:
    files = storage_of(root)
    deep = f"{root}/event_date=2025-10-01/part é.bin"
    files.make_folder(deep.rpartition("/")[0])
    files.write(deep, b"first")
    files.write(deep, b"abc")
    files.write(f"{root}/_log", b"12")
    assert files.read(deep) == b"abc" and files.size(deep) == 3
    assert files.read(f"{root}/none") is None and files.size(f"{root}/none") is None
    assert files.folders(root) == ["event_date=2025-10-01"]
    assert files.names(root) == ["_log", "event_date=2025-10-01"]
    assert [(file.path, file.size) for file in files.files(root)] == [
        ("_log", 2), ("event_date=2025-10-01/part é.bin", 3)
    ]  # fmt: skip
    folders, beside = files.listed(root)
    assert folders == ["event_date=2025-10-01"] and [(file.path, file.size) for file in beside] == [("_log", 2)]
    assert beside[0].modified > 1_600_000_000
    for nothing in (files.folders, files.names, files.files):
        assert nothing(f"{root}/none") == []
    assert files.listed(f"{root}/none") == ([], [])


def test_a_packed_file_is_read_as_it_lies_there(root: str, tmp_path: Path) -> None:
    files, path = storage_of(root), f"{root}/rows.csv.gz"
    packed = gzip.compress(b"ts,x\n")
    files.write(path, packed)
    assert files.read(path) == packed and Path(files.bring(path, str(tmp_path))).read_bytes() == packed


def test_a_file_is_read_from_any_place_and_has_a_stamp(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_CHUNK", 4)
    files, path = storage_of(root), f"{root}/numbers"
    files.write(path, bytes(range(10)))
    with files.opened(path) as file:
        assert file.read(3) == b"\0\1\2" and file.tell() == 3
        assert file.seek(-2, os.SEEK_END) == 8 and file.read(5) == b"\x08\x09" and file.read(1) == b""
        assert file.seek(1) == 1 and file.seek(4, os.SEEK_CUR) == 5 and file.readall() == bytes(range(5, 10))
        assert file.seek(100) == 100 and file.read(1) == b""
        with pytest.raises(OSError):
            file.seek(-1)
    first = files.stamp(path)
    assert first.size == 10 and first.modified_ns > 1_600_000_000 * 10**9
    files.write(path, b"more than ten")
    assert files.stamp(path) != first
    for ask in (files.stamp, files.opened):
        with pytest.raises(FileNotFoundError):
            ask(f"{root}/none")


def test_a_whole_bucket_is_a_folder_too(tmp_path: Path) -> None:
    root = f"file://{tmp_path}"
    files = ObjectStorage(root)
    for path in ("lake/events/x", "lake2/y", "z"):
        files.write(f"{root}/{path}", b"1")
    assert [file.path for file in files.files(root)] == ["lake/events/x", "lake2/y", "z"]
    assert files.folders(root) == ["lake", "lake2"] and files.names(root) == ["lake", "lake2", "z"]
    files.move(f"{root}/lake", f"{root}/kept")
    files.remove_all(root, ["lake2/y"])
    assert [file.path for file in files.files(root)] == ["lake2/y"]


def test_files_are_copied_moved_and_removed(root: str, tmp_path: Path) -> None:
    files = storage_of(root)
    files.write(f"{root}/a/b/x", b"1")
    files.write(f"{root}/a/y", b"2")
    files.take(f"{root}/a/y", f"{root}/z")
    own = tmp_path / "own"
    own.write_bytes(b"from a disk")
    files.take(str(own), f"{root}/w")
    assert files.read(f"{root}/w") == b"from a disk" and files.read(f"{root}/z") == b"2"
    files.move(f"{root}/a", f"{root}/kept/there")
    files.move(f"{root}/z", f"{root}/kept/z")
    files.move(f"{root}/nothing", f"{root}/kept/nothing")
    assert [file.path for file in files.files(root)] == ["kept/there/b/x", "kept/there/y", "kept/z", "w"]
    brought = files.bring(f"{root}/w", str(tmp_path))
    assert Path(brought).read_bytes() == b"from a disk"
    files.remove(f"{root}/w")
    files.remove(f"{root}/w")
    files.remove_all(f"{root}/kept", ["there/y"])
    assert [file.path for file in files.files(root)] == ["kept/there/y"]
    files.remove_all(f"{root}/kept")
    files.remove_all(f"{root}/kept")
    assert files.files(root) == []


def test_parquet_goes_through_any_storage(root: str) -> None:
    rows = pa.table({"a": [1, 2, 3]})
    path = f"{root}/rows.parquet"
    with parquet_writer(path, rows.schema, write_page_checksum=True) as out:
        out.write_table(rows)
    with parquet_file(path, page_checksum_verification=True) as file:
        assert file.read_row_group(0).equals(rows)
    assert parquet_rows(path).equals(rows) and parquet_footer(path).num_rows == 3
    assert parquet_dataset([path, path]).count_rows() == 6
    assert not [name for name in os.listdir() if ":" in name]


def test_a_kind_of_store_that_nobody_knows_is_refused(home: Home) -> None:
    with pytest.raises(StoreFailed, match="no object store is known for ftp://host"):
        storage_of("ftp://host/lake/events")


def test_settings_get_the_names_that_libraries_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    with monkeypatch.context() as patch:
        for name in (*VARIABLES, *VARIABLES.values(), "AWS_ALLOW_HTTP"):
            # Set first, so that what is set below is undone.
            patch.setenv(name, "")
            patch.delenv(name)
        patch.setenv("CHAINLAKE_STORE_ENDPOINT", "http://127.0.0.1:9000")
        patch.setenv("CHAINLAKE_STORE_ACCESS_KEY", "key")
        patch.setenv("CHAINLAKE_STORE_SECRET_KEY_FILE", str(secret))
        apply_settings()
        assert os.environ["AWS_ENDPOINT_URL"] == "http://127.0.0.1:9000" and os.environ["AWS_ALLOW_HTTP"] == "true"
        assert (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]) == ("key", "s3cret")
        patch.setenv("CHAINLAKE_STORE_TOKEN_FILE", str(tmp_path / "none"))
        with pytest.raises(UnreadableSetting, match="CHAINLAKE_STORE_TOKEN_FILE names .*none"):
            apply_settings()


def test_who_asks_for_a_storage_has_its_settings_for_delta_rs_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("CHAINLAKE_STORE_ACCESS_KEY", "key")
    storage_of("/a/lake")
    assert "AWS_ACCESS_KEY_ID" not in os.environ
    storage_of("s3://bucket/lake")
    assert os.environ["AWS_ACCESS_KEY_ID"] == "key"


def test_workers_are_given_what_a_store_needs_and_nothing_for_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *VARIABLES.values(), "AWS_DEFAULT_REGION", "AWS_ALLOW_HTTP"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("CHAINLAKE_STORE_SECRET_KEY", "s3cret")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert carried("/a/lake") == {} and "AWS_SECRET_ACCESS_KEY" not in os.environ
    monkeypatch.setenv("AWS_CA_BUNDLE", "/only/here.pem")
    assert carried("s3://b/lake") == {"AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_REGION": "eu-north-1"}


SAID = {
    "refuses access to s3://b/l (SignatureDoesNotMatch)": "Generic S3 error: … 403 Forbidden: "
    "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>",
    "refuses access to s3://b/l (no word why)": "Kernel error -> The operation lacked the necessary privileges",
    "refuses access to s3://b/l (no key)": "Operation not supported: an error occurred while loading credentials",
    # What delta-rs makes of the answers of a store to a write.
    "refuses access to s3://b/l (InvalidToken)": "The operation lacked valid authentication credentials for path "
    "t/_delta_log/00000000000000000001.json\n \x1b[31m↳\x1b[0m Error performing PUT … 401 Unauthorized\n "
    "<Error><Code>InvalidToken</Code><Message>m</Message></Error>",
    "no bucket for s3://b/l": "Object at location t/_delta_log/00000000000000000001.json not found\n "
    "Error performing PUT … 404 Not Found\n <Error><Code>NoSuchBucket</Code><Message>m</Message></Error>",
    "failed for s3://b/l: KMS.NotFoundException": "Generic S3 error … 400 Bad Request: "
    "<Error><Code>KMS.NotFoundException</Code><Message>m</Message></Error>",
    "has no bucket for s3://b/l": "Generic S3 error: 404 Not Found: <Error><Code>NoSuchBucket</Code></Error>",
    "for s3://b/l does not answer": "\x1b[31mGeneric S3 error\x1b[0m … error sending request … Connection refused",
    "failed for s3://b/l: InternalError": "Generic S3 error: 500: <Error><Code>InternalError</Code></Error>",
}


@pytest.mark.parametrize("wanted", SAID)
def test_what_a_store_answers_is_told_in_one_sentence(wanted: str) -> None:
    found = store_error(OSError(SAID[wanted]), "s3://b/l")
    assert isinstance(found, InfrastructureError) and found.exit_code == 5
    assert wanted in found.what and found.hint and "AKIA" not in str(found) and "\x1b" not in str(found)


def test_errors_of_others_are_none_of_a_store() -> None:
    assert store_error(OSError("No space left on device"), "s3://b/l") is None
