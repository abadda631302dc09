"""A task and its persistent stores; records and time are in the tests of the driver."""

from __future__ import annotations

from importlib import util
from pathlib import Path

import pytest

from pybroker.streams import INT64, STRING, StreamsBuilder, StreamsError
from pybroker.streams.config import parse_config
from pybroker.streams.errors import TaskCorruptedError, TaskMigratedError
from pybroker.streams.exception_handlers import Handlers, log_and_continue
from pybroker.streams.runtime.collector import ProducedRecord, RecordCollector
from pybroker.streams.runtime.record_queue import RawRecord
from pybroker.streams.runtime.task import StreamTask
from pybroker.streams.state import rocks


class Changelogs(RecordCollector):
    """Keeps the number of records of each topic."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}

    def send(self, record: ProducedRecord) -> None:
        self.ends[record.topic] = self.ends.get(record.topic, 0) + 1

    def partitions(self, topic: str) -> int:
        return 1


def counting(directory: Path | None, collector: RecordCollector | None = None) -> StreamTask:
    """Return a task that counts the records of each key, with a cache."""
    builder = StreamsBuilder()
    words = builder.stream("words", key_serde=STRING, value_serde=STRING)
    counts = words.group_by_key(key_serde=STRING, value_serde=STRING).count(store="counts")
    counts.to_stream().to("out", key_serde=STRING, value_serde=INT64)
    topology = builder.build()
    task = StreamTask(topology, list(topology.nodes), parse_config({}, "app", 0), collector or Changelogs(), lambda: 0)
    task.state_directory = directory
    return task


def process(task: StreamTask, count: int) -> None:
    for offset in range(count):
        task.add_record("words", RawRecord("words", 0, offset, 1, b"k", b"v", ()))
        task.process()
    task.flush_caches()


def test_killed_task_continues_from_its_last_commit(tmp_path: Path) -> None:
    changelogs = Changelogs()
    task = counting(tmp_path, changelogs)
    task.start()
    process(task, 3)
    assert task.uncommitted_bytes > 0
    task.commit_stores({"counts": changelogs.ends["app-counts-changelog"]})
    assert task.uncommitted_bytes == 0
    process(task, 2)
    task.close_stores()
    task = counting(tmp_path)
    task.start()
    store = task.stores["counts"]
    assert (store.get("k").value, store.committed_offset) == (3, 1)  # type: ignore[attr-defined]
    task.close()


def test_missing_package_fails_before_a_store_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rocks, "find_spec", lambda name: None if name == "rocksdict" else util.find_spec(name))
    with pytest.raises(StreamsError, match=r"store 'counts' is persistent, .* python -m pip install"):
        counting(tmp_path).start()
    assert list(tmp_path.iterdir()) == []
    counting(None).start()


def test_damage_reaches_the_runner_with_store_and_path(tmp_path: Path) -> None:
    directory = tmp_path / "0_1"
    task = counting(directory)
    task.start()
    process(task, 1)
    task.commit_stores({})
    task.close()
    (table,) = (directory / "rocksdb" / "counts").glob("*.sst")
    content = table.read_bytes()
    table.write_bytes(b"XXXX" + content[4:])
    with pytest.raises(TaskCorruptedError, match=f"store 'counts' at {directory}/rocksdb/counts is damaged") as raised:
        counting(directory).start()
    assert raised.value.task_id == "0_1"


def test_damage_found_by_an_operator_keeps_its_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(key: str) -> None:
        raise TaskCorruptedError(f"no block of {key}", "0_0")

    task = counting(None)
    task.start()
    monkeypatch.setattr(task.stores["counts"], "get", fail)
    with pytest.raises(TaskCorruptedError, match=r"^no block of k$"):
        process(task, 1)


def test_an_ended_transaction_keeps_its_class_and_passes_the_handler() -> None:
    class Ended(Changelogs):
        def send(self, record: ProducedRecord) -> None:
            raise TaskMigratedError(f"the transaction has ended before {record.topic}")

    builder = StreamsBuilder()
    builder.stream("words", key_serde=STRING, value_serde=STRING).to("out", key_serde=STRING, value_serde=STRING)
    topology = builder.build()
    task = StreamTask(topology, list(topology.nodes), parse_config({}, "app", 0), Ended(), lambda: 0)
    task.handlers = Handlers(processing=log_and_continue, production=log_and_continue)
    task.start()
    with pytest.raises(TaskMigratedError, match=r"^the transaction has ended before out$"):
        process(task, 1)
    assert task.dropped_records == 0
