"""Alerts: each match that was published or withdrawn is told at least once, to receivers that fail and are slow."""

from __future__ import annotations

import json
import math
import shutil
import threading
import time as clock
from collections.abc import Iterator
from datetime import UTC, datetime, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from chainlake.cep.pattern import compile_pattern
from chainlake.cli.main import main
from chainlake.errors import DefinitionError
from chainlake.lake.delta import tables
from chainlake.operations.alerts.cursor import FOLDER, Cursor, CursorBroken, read_cursor, write_cursor
from chainlake.operations.alerts.outbox import of_pattern
from chainlake.operations.alerts.send import FeedCut, Sending, send
from chainlake.operations.alerts.webhook import NoAddress, NotTaken, Trying
from chainlake.paths import Home
from tests.lake.appending import append_arrow
from tests.lake.test_publish import D1, TABLE, match


class Receiver:
    """A real HTTP server; ``plan`` says how it answers one request after the other, then with 200."""

    def __init__(self) -> None:
        self.plan: list[Any] = []
        self.got: list[dict[str, Any]] = []
        self.keys: list[str] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.got.append(body)
                receiver.keys.append(self.headers["Idempotency-Key"])
                answer = receiver.plan.pop(0) if receiver.plan else 200
                if answer == "slow":
                    clock.sleep(0.5)
                if answer == "gone":
                    self.connection.close()
                    return
                self.send_response(200 if answer == "slow" else answer)
                if answer in (301, 302, 303, 307, 308):
                    self.send_header("Location", receiver.address)
                self.end_headers()

            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()

            def log_message(self, *words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ids(self) -> list[str]:
        """What was told, each once, in order."""
        return list(dict.fromkeys(f"{one['kind']} {int(one['match']['match_id'], 16)}" for one in self.got))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.server.shutdown()
    found.server.server_close()


def pattern(front: str) -> Any:
    """The pattern of table ``matches.p`` with these alerts."""
    text = f"---\nsource: stock\ndescription: a test\nalerts: {front}\n---\nPATTERN Bar a WITHIN 1 min"
    found: Any = SimpleNamespace(pattern=compile_pattern(text, name="p"), definition=SimpleNamespace(source="stock"))
    return of_pattern(found)


def publish(home: Home, version: int, *numbers: int) -> None:
    """A version of the match table with more matches."""
    tables.ensure_table(home, TABLE)
    rows = pa.Table.from_pylist([match(number, D1) for number in numbers], schema=TABLE.arrow())
    append_arrow(home, TABLE, rows, app="p", base_version=version - 1, mark="m")


def quick(tries: int = 5, pauses: list[float] | None = None) -> Sending:
    slept = [] if pauses is None else pauses
    return Sending(Trying(tries=tries, timeout_s=0.2, sleep=slept.append))


def test_what_is_published_is_told_once_where_nothing_fails(home: Home, receiver: Receiver) -> None:
    item = pattern(f"{{webhook: '{receiver.address}'}}")
    publish(home, 1, 1, 2)
    first = send(home, item, quick())
    assert (first.sent, first.version, receiver.got) == (0, 1, []) and "from now on" in first.why
    publish(home, 2, 3, 4)
    publish(home, 3, 5)
    assert send(home, item, quick()).sent == 3 and receiver.ids() == ["added 3", "added 4", "added 5"]
    assert send(home, item, quick()).sent == 0 and len(receiver.got) == 3
    one = receiver.got[0]
    assert one["id"] == receiver.keys[0] == f"{one['match']['match_id']}:added:2"
    assert (one["pattern"], one["description"], one["source"]) == ("p", "a test", "stock")
    assert set(one["match"]) == set(TABLE.arrow().names) and one["published"].endswith("Z")
    assert send(home, item, Sending(since=0, trying=quick().trying)).sent == 5
    assert receiver.ids()[3:] == ["added 1", "added 2"]


@pytest.mark.slow
@pytest.mark.parametrize("answer", [500, 503, 429, "slow", "gone"])
def test_a_receiver_that_fails_is_tried_again_with_longer_pauses(answer: Any, home: Home, receiver: Receiver) -> None:
    item = pattern(f"{{webhook: '{receiver.address}'}}")
    publish(home, 1, 1)
    write_cursor(home, "pattern/p", Cursor(0))
    receiver.plan = [answer, answer, answer]
    pauses: list[float] = []
    assert send(home, item, quick(pauses=pauses)).sent == 1
    assert len(receiver.got) == 4 and len(set(receiver.keys)) == 1 and pauses == [1.0, 2.0, 4.0]


def test_a_lake_restored_with_an_older_cursor_tells_again_and_without_one_begins_now(
    home: Home, receiver: Receiver
) -> None:
    item = pattern(f"{{webhook: '{receiver.address}'}}")
    publish(home, 1, 1)
    send(home, item, quick())
    copied = read_cursor(home, "pattern/p")
    publish(home, 2, 2, 3)
    assert send(home, item, quick()).sent == 2
    write_cursor(home, "pattern/p", copied)
    assert send(home, item, quick()).sent == 2
    assert [one["id"] for one in receiver.got[:2]] == [one["id"] for one in receiver.got[2:]]
    shutil.rmtree(Path(home.lake) / FOLDER)
    assert send(home, item, quick()).sent == 0


def test_a_sender_that_gives_up_goes_on_with_the_same_message(home: Home, receiver: Receiver) -> None:
    item = pattern(f"{{webhook: '{receiver.address}'}}")
    publish(home, 1, 1, 2, 3)
    write_cursor(home, "pattern/p", Cursor(0))
    receiver.plan = [200, 500, 500]
    with pytest.raises(NotTaken, match="tried 2 times: it answered 500") as caught:
        send(home, item, quick(tries=2))
    assert receiver.address not in str(caught.value)
    publish(home, 2, 4)
    assert send(home, item, quick()).sent == 3
    assert receiver.ids() == ["added 1", "added 2", "added 3", "added 4"]
    # The first one was recorded as sent; the second was tried again under the same id.
    assert receiver.keys.count(receiver.keys[0]) == 1 and receiver.keys.count(receiver.keys[1]) == 3


def test_a_message_that_is_refused_is_not_tried_again_and_not_skipped(home: Home, receiver: Receiver) -> None:
    item = pattern(f"{{webhook: '{receiver.address}'}}")
    publish(home, 1, 1, 2)
    write_cursor(home, "pattern/p", Cursor(0))
    receiver.plan = [400]
    with pytest.raises(NotTaken, match="answered 400"):
        send(home, item, quick())
    assert len(receiver.got) == 1 and send(home, item, quick()).sent == 2


@pytest.mark.slow
@pytest.mark.parametrize("answer", [301, 302, 303, 307, 308])
def test_an_answer_that_sends_elsewhere_is_none(answer: int, home: Home, receiver: Receiver) -> None:
    """A client that follows it asks for the other page, without the message."""
    item = pattern(f"{{webhook: '{receiver.address}'}}")
    publish(home, 1, 1)
    write_cursor(home, "pattern/p", Cursor(0))
    receiver.plan = [answer]
    with pytest.raises(NotTaken, match=f"answered {answer}, which sends elsewhere"):
        send(home, item, quick())
    assert read_cursor(home, "pattern/p") == Cursor(0)


@pytest.mark.parametrize(
    "address", ["http://u:S3CRET@127.0.0.1/", "http://127.0.0.1:1/S3CRET x", "http://127.0.0.1:1/é"]
)
def test_an_address_that_is_none_is_told_and_not_shown(
    address: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(home, 1, 1)
    write_cursor(home, "pattern/p", Cursor(0))
    monkeypatch.setenv("HOOK", address)
    with pytest.raises(NoAddress, match="alerts of p") as caught:
        send(home, pattern("{webhook: $HOOK}"), quick())
    assert "S3CRET" not in str(caught.value)


def test_numbers_that_json_does_not_have_are_told_as_null() -> None:
    from chainlake.operations.alerts.messages import _plain

    found = _plain({"a": [float("nan"), float("inf"), 1.5], "b": -math.inf})
    assert json.loads(json.dumps(found, allow_nan=False)) == {"a": [None, None, 1.5], "b": None}


def test_a_table_that_took_the_place_of_the_one_told_of_is_not_mistaken_for_it(home: Home, receiver: Receiver) -> None:
    """Its versions have the same numbers, and its first rows would never be told."""
    item = pattern(f"{{webhook: '{receiver.address}'}}")
    publish(home, 1, 1)
    send(home, item, quick())
    shutil.rmtree(home.table("matches", "p"))
    publish(home, 1, 2)
    publish(home, 2, 3)
    with pytest.raises(FeedCut, match="have moved to another table"):
        send(home, item, quick())
    assert send(home, item, Sending(since=0, trying=quick().trying)).sent == 2


def test_where_to_begin_is_kept_by_a_call_that_sends_nothing(home: Home, receiver: Receiver) -> None:
    item = pattern(f"{{webhook: '{receiver.address}', mute: ['22:00-06:00']}}")
    publish(home, 1, 1)
    night = datetime(2025, 10, 2, 3, 0, tzinfo=UTC)  # 23:00 in New York
    assert send(home, item, Sending(since=0, now=lambda: night)).version is None
    receiver.plan = [400]
    noon = datetime(2025, 10, 2, 16, 0, tzinfo=UTC)
    with pytest.raises(NotTaken):
        send(home, item, Sending(since=0, now=lambda: noon))
    assert send(home, item, Sending(now=lambda: noon)).sent == 1


def test_nobody_listens(home: Home) -> None:
    publish(home, 1, 1)
    write_cursor(home, "pattern/p", Cursor(0))
    with pytest.raises(NotTaken, match="tried 2 times: URLError"):
        send(home, pattern("{webhook: 'http://127.0.0.1:9/x'}"), quick(tries=2))
    assert read_cursor(home, "pattern/p") == Cursor(0)


@pytest.mark.slow
@pytest.mark.parametrize(("more", "told"), [("", ["added 1", "withdrawn 1"]), (", withdrawn: false", ["added 1"])])
def test_a_withdrawn_match_is_told(more: str, told: list[str], home: Home, receiver: Receiver) -> None:
    from deltalake import DeltaTable

    publish(home, 1, 1)
    DeltaTable(home.table("matches", "p")).delete()
    write_cursor(home, "pattern/p", Cursor(0))
    send(home, pattern(f"{{webhook: '{receiver.address}'{more}}}"), quick())
    cursor = read_cursor(home, "pattern/p")
    assert receiver.ids() == told and cursor is not None and (cursor.version, cursor.last) == (2, None)


def test_while_it_is_muted_nothing_is_sent_and_nothing_lost(home: Home, receiver: Receiver) -> None:
    item = pattern(f"{{webhook: '{receiver.address}', mute: ['22:00-06:00']}}")
    publish(home, 1, 1)
    write_cursor(home, "pattern/p", Cursor(0))
    # 03:30 UTC is 23:30 in New York, 10:00 UTC is 06:00.
    night, morning = datetime(2025, 7, 1, 3, 30, tzinfo=UTC), datetime(2025, 7, 1, 10, tzinfo=UTC)
    told = send(home, item, Sending(quick().trying, now=lambda: night))
    assert told.sent == 0 and "muted now, by the clock of America/New_York" in told.why and receiver.got == []
    assert send(home, item, Sending(quick().trying, now=lambda: morning)).sent == 1


def test_stretches_of_a_day(home: Home) -> None:
    alerts = pattern("{webhook: $HOOK, mute: ['22:00-06:00', '12:00-13:00']}").alerts
    muted = {hour for hour in range(24) if alerts.muted(time(hour))}
    assert muted == {22, 23, 0, 1, 2, 3, 4, 5, 12}


def test_the_address_can_be_a_secret_of_the_environment(
    home: Home, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(home, 1, 1)
    write_cursor(home, "pattern/p", Cursor(0))
    with pytest.raises(NoAddress, match="HOOK, which is not set"):
        send(home, pattern("{webhook: $HOOK}"), quick())
    monkeypatch.setenv("HOOK", receiver.address)
    assert send(home, pattern("{webhook: $HOOK}"), quick()).sent == 1


def test_a_feed_that_does_not_reach_back_is_told(home: Home, receiver: Receiver) -> None:
    item = pattern(f"{{webhook: '{receiver.address}'}}")
    assert send(home, item, quick()).version == 0  # there is no table yet
    publish(home, 1, 1)
    write_cursor(home, "pattern/p", Cursor(7))
    with pytest.raises(FeedCut, match="no version 7 yet") as caught:
        send(home, item, quick())
    assert "--from-now" in str(caught.value.hint)
    assert send(home, item, Sending(from_now=True)).version == 1
    Path(home.lake, "chainlake-alerts", "pattern", "p.json").write_text("{")
    with pytest.raises(CursorBroken):
        send(home, item, quick())


@pytest.mark.parametrize(
    ("front", "told"),
    [
        ("{}", "webhook must be an address"),
        ("{webhook: mail}", "webhook must be an address"),
        ("{webhook: 'file:///etc/passwd'}", "webhook must be an address"),
        ("{webhook: $HOOK, mut: x}", "unknown key mut in alerts"),
        ("{webhook: $HOOK, mute: ['25:00-26:00']}", "not a time span of a day"),
        ("{webhook: $HOOK, mute: ['06:00-06:00']}", "not a time span of a day"),
        ("{webhook: $HOOK, withdrawn: 1}", "true or false"),
        ("[a]", "alerts must be a map"),
    ],
)
def test_what_is_wrong_in_the_front_matter(front: str, told: str) -> None:
    with pytest.raises(DefinitionError, match=told):
        pattern(front)


def test_alerts_change_no_match() -> None:
    text = "---\nsource: stock\ndescription: a test\n---\nPATTERN Bar a WITHIN 1 min"
    with_alerts = compile_pattern(text.replace("a test", "a test\nalerts: {webhook: $HOOK}"), name="p")
    assert with_alerts.front.alerts is not None
    assert with_alerts.definition_hash == compile_pattern(text, name="p").definition_hash


def test_the_verb_tells_what_it_did(
    home: Home, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.cli.conftest import SHIPPED

    config = tmp_path / "config"
    (config / "sources").mkdir(parents=True)
    (config / "patterns").mkdir()
    (config / "sources" / "stock.yaml").write_bytes((SHIPPED / "sources" / "stock.yaml").read_bytes())
    text = (SHIPPED / "patterns" / "shakeout.sase").read_text()
    (config / "patterns" / "quiet.sase").write_text(text)
    (config / "patterns" / "loud.sase").write_text(text.replace("params:", "alerts: {webhook: $HOOK}\nparams:"))
    monkeypatch.setenv("CHAINLAKE_CONFIG", str(config))
    monkeypatch.delenv("HOOK", raising=False)
    for words in (["alerts", "send"], ["alerts", "send", "--from-now"]):
        assert main(words) == 2 and "variable HOOK, which is not set" in capsys.readouterr().err
    monkeypatch.setenv("HOOK", "S3CRET@pager")
    assert main(["alerts", "send"]) == 2
    told = capsys.readouterr().err
    assert "variable HOOK, which does not begin with http:// or https://" in told and "S3CRET" not in told
    assert read_cursor(home, "pattern/loud") is None
    monkeypatch.setenv("HOOK", receiver.address)
    assert main(["alerts", "send"]) == 0
    out = capsys.readouterr().out
    assert out == "loud: 0 messages sent, table at version 0; what is published from now on is sent\n"
    assert main(["alerts", "send", "loud"]) == 0
    assert main(["alerts", "send", "quiet"]) == 2
    assert "there is no pattern or model with alerts quiet" in capsys.readouterr().err
