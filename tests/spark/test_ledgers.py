"""`pybroker-spark ledgers`: which ledgers there are, and that only those of queries that are no more are deleted."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pybroker.client import Admin, Producer
from pybroker.testing import Broker
from pybroker_spark import command
from pybroker_spark.sink.entries import Begun, Done, Entry, Wrote, write_entry
from pybroker_spark.sink.ledger import PREFIX, Ledger

OLD_MS = 1_488_369_600_000
"""2017-03-01 12:00 UTC in milliseconds."""


@pytest.fixture
def servers() -> Iterator[str]:
    with Broker(log_retention_ms=-1) as broker:
        yield broker.bootstrap_servers


def write(servers: str, *entries: Entry, at_ms: int | None = None) -> str:
    """Make a ledger with entries; the query's id."""
    query = str(uuid.uuid4())
    ledger = Ledger(servers, {}, query)
    topic = ledger.made().topic
    ledger.close()
    with Producer(servers) as producer:
        for entry in entries:
            producer.send(topic, write_entry(entry), timestamp_ms=at_ms)
    return query


def there(servers: str) -> set[str]:
    """The queries that have ledgers, as librdkafka lists topics."""
    topics = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=60).topics
    return {name.removeprefix(PREFIX) for name in topics if name.startswith(PREFIX)}


def run(servers: str, *arguments: object) -> int:
    return command.main(["ledgers", "--bootstrap-server", servers, *(str(argument) for argument in arguments)])


def test_ledgers_are_listed_with_what_is_done_and_begun(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = write(servers, Begun(6, 0, 1, 0), Done(6), at_ms=OLD_MS)
    begun = write(servers, Done(6), Begun(7, 0, 1, 0), at_ms=OLD_MS)
    first = write(servers, Wrote(0, 0), at_ms=OLD_MS)
    empty = write(servers)
    assert run(servers) == 0
    at = "2017-03-01T12:00:00Z"
    header, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header == ["QUERY", "DONE", "BEGUN", "LAST", "ENTRY"]
    assert sorted(lines) == sorted(
        [[done, "6", "-", at], [begun, "6", "7", at], [first, "-", "0", at], [empty, "-", "-", "-"]]
    )
    assert there(servers) == {done, begun, first, empty}


def test_those_of_checkpoints_that_exist_stay(servers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, removed, half = write(servers, Done(1)), write(servers, Done(1)), write(servers, Done(1), Begun(2, 0, 1, 0))
    (tmp_path / "orders" / "state").mkdir(parents=True)
    (tmp_path / "orders" / "metadata").write_text(json.dumps({"id": kept}))
    (tmp_path / "orders" / "state" / "metadata").write_text("v1\nno JSON")
    assert run(servers, "--checkpoints", tmp_path, "--delete") == 0
    out, err = capsys.readouterr()
    assert out == f"deleted {PREFIX}{removed}\n"
    assert err == f"{PREFIX}{half} stays: batch 2 is begun and not done; name it by --query to delete it\n"
    assert there(servers) == {kept, half}
    assert run(servers, "--query", half, "--delete") == 0
    assert there(servers) == {kept}


def test_those_that_are_old_are_deleted(servers: str) -> None:
    write(servers, Done(1), at_ms=OLD_MS)
    new = write(servers, Done(1))
    assert run(servers, "--older-than", 30, "--delete") == 0
    assert there(servers) == {new}


def test_nothing_is_deleted_that_was_not_chosen(servers: str, tmp_path: Path) -> None:
    query = write(servers, Done(1))
    for arguments in (["--delete"], ["--delete", "--checkpoints", tmp_path / "nowhere"]):
        with pytest.raises(SystemExit, match="2"):
            run(servers, *arguments)
    assert there(servers) == {query}


def test_other_topics_are_no_ledgers(servers: str) -> None:
    with Admin(servers) as admin:
        admin.create_topics(["spark_sink_orders"])
    assert run(servers, "--older-than", 1, "--delete") == 0
    with Admin(servers) as admin:
        assert admin.list_topics() == ["spark_sink_orders"]


def test_the_package_is_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pybroker_spark", "nothing"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr.splitlines()[0]) == (2, "pybroker-spark: no command 'nothing'")
    assert all(f"\n  {name}" in ran.stderr for name in ("archive", "ingest", "word-count", "ledgers"))
