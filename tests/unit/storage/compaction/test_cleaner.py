"""The log cleaner over real logs: which is compacted, what is remembered, what happens to one that is damaged."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.topic import TopicConfig
from pybroker.storage.compaction.cleaner import Cleaner
from pybroker.storage.compaction.last_passes import CLEANED, FILE_NAME, UNCLEANABLE, WAITING, read_last_passes
from pybroker.storage.log_config import build_log_config
from pybroker.storage.log_dirs.checkpoint import CLEANED_OFFSETS, read_checkpoint, write_checkpoint
from pybroker.storage.log_dirs.directories import Directories
from pybroker.storage.native import Partition
from pybroker.storage.partitions import Partitions
from tests.support.batches import Batch, Record, read_batches
from tests.support.partitions import lead, open_one

NOW = int(time.time() * 1000)
COMPACT = {"cleanup.policy": "compact", "delete.retention.ms": "0", "file.delete.delay.ms": "7"}


def segment(base: int, keys: bytes, *, time_ms: int = NOW) -> bytes:
    """One batch of a record for each letter, whose value is its offset."""
    records = tuple(Record(b"%d" % (base + index), key=bytes([key])) for index, key in enumerate(keys))
    return Batch(records, base_offset=base, leader_epoch=0, base_timestamp=time_ms).encode()


class Broker:
    """What a cleaner works for, in one directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings: dict[str, dict[str, str]] = {}
        self.config = BrokerConfig({})
        self.later: list[tuple[int, Callable[[], None]]] = []
        self.failed: list[Path] = []
        self.moving: set[tuple[str, int]] = set()
        self.directories = Directories.acquire([path], path, 1)
        self.directories.format(1)
        self.partitions = Partitions(self.directories, lambda: NOW)
        self.partitions.scan()

    def topic(self, name: str, *segments: bytes, **settings: str) -> Partition:
        """A partition of these segments, the last one active."""
        self.settings[name] = {**COMPACT, **{key.replace("_", "."): value for key, value in settings.items()}}
        folder = self.path / f"{name}-0"
        folder.mkdir()
        for content in segments:
            (base,) = struct.unpack_from(">q", content)
            (folder / f"{base:020}.log").write_bytes(content)
        self.partitions.scan()
        partition = open_one(self.partitions, name, 0, os.urandom(16), build_log_config(self.settings_of(name)))
        lead(partition)
        return partition

    def settings_of(self, name: str) -> TopicConfig:
        return TopicConfig(self.settings[name], self.config)

    def cleaner(self) -> Cleaner:
        return Cleaner(
            self.partitions,
            self.settings_of,
            lambda: self.config,
            lambda delay_ms, work: self.later.append((delay_ms, work)),
            lambda: NOW,
            lambda path, _error: self.failed.append(path),
            lambda topic, index: (topic, index) in self.moving,
        )

    def values(self, name: str) -> list[bytes | None]:
        """The values in all segments of a log."""
        logs = sorted((self.path / f"{name}-0").glob("*.log"))
        return [value for path in logs for batch in read_batches(path.read_bytes()) for value in batch.values]

    def checkpoint(self) -> dict[tuple[str, int], int]:
        return read_checkpoint(self.path / CLEANED_OFFSETS)

    def states(self) -> dict[str, str]:
        return {topic: last.state for (topic, _), last in read_last_passes(self.path / FILE_NAME).items()}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path / "data")
    yield made
    made.directories.release()


def test_a_dirty_log_is_compacted_and_the_pass_is_remembered(broker: Broker) -> None:
    broker.topic("a", segment(0, b"xyx"), segment(3, b"xz"), segment(5, b"x"))
    cleaner = broker.cleaner()
    assert cleaner.clean_filthiest()
    assert broker.values("a") == [b"1", b"3", b"4", b"5"]
    assert broker.checkpoint() == {("a", 0): 5}
    assert (broker.path / "cleaner-offset-checkpoint").read_text() == "0\n1\na 0 5\n", "the form of Kafka's file"
    last = read_last_passes(broker.path / FILE_NAME)["a", 0]
    assert (last.state, last.first_dirty, last.records_before, last.records_after) == (CLEANED, 5, 5, 3)
    assert last.bytes_before > last.bytes_after > 0
    counts = cleaner.counts
    assert (counts.passes, counts.bytes_read, counts.bytes_written) == (1, last.bytes_before, last.bytes_after)
    assert counts.max_dirty_ratio == 1, "as it was looked at before the pass"
    assert (counts.due, counts.due_bytes) == (1, last.bytes_before)
    assert not cleaner.clean_filthiest(), "nothing is dirty any more"
    assert (counts.passes, counts.max_dirty_ratio, counts.due, counts.due_bytes) == (1, 0, 0, 0)


def test_files_that_were_replaced_go_when_their_time_has_come(broker: Broker) -> None:
    broker.topic("a", segment(0, b"xx"), segment(2, b"x"), segment(3, b"x"))
    assert broker.cleaner().clean_filthiest()
    folder = broker.path / "a-0"
    assert {path.name for path in folder.glob("*.log.deleted")} == {f"{base:020}.log.deleted" for base in (0, 2)}
    ((delay_ms, work),) = broker.later
    assert delay_ms == 7
    work()
    assert list(folder.glob("*.deleted")) == []


def test_the_next_run_goes_on_where_the_last_one_was(broker: Broker) -> None:
    broker.topic("a", segment(0, b"xx"), segment(2, b"x"))
    assert broker.cleaner().clean_filthiest()
    assert [found.first_dirty for found in broker.cleaner().survey()] == [2]
    assert not broker.cleaner().clean_filthiest()
    write_checkpoint(broker.path / CLEANED_OFFSETS, {("a", 0): 99})
    assert [found.first_dirty for found in broker.cleaner().survey()] == [0], "a checkpoint beyond the log is none"


@pytest.mark.parametrize(("text", "warnings"), [("", 0), ("7\n", 1)])
def test_a_checkpoint_that_kafka_has_made_and_not_written_is_no_damage(
    broker: Broker, text: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    broker.topic("a", segment(0, b"xx"), segment(2, b"x"))
    (broker.path / CLEANED_OFFSETS).write_text(text)
    assert [found.first_dirty for found in broker.cleaner().survey()] == [0]
    assert caplog.text.count("all compacted logs of this directory are dirty") == warnings


def test_a_log_is_worth_a_pass_when_its_ratio_is_above_its_topics(broker: Broker) -> None:
    broker.topic("a", segment(0, b"xx"), segment(2, b"xx"), segment(4, b"x"), min_cleanable_dirty_ratio="0.6")
    write_checkpoint(broker.path / CLEANED_OFFSETS, {("a", 0): 2})
    assert not broker.cleaner().clean_filthiest()
    broker.settings["a"]["min.cleanable.dirty.ratio"] = "0.4"
    assert broker.cleaner().clean_filthiest()


def test_a_log_whose_lag_has_passed_is_compacted_however_clean(broker: Broker) -> None:
    broker.topic("a", segment(0, b"xx"), segment(2, b"xx", time_ms=NOW - 5000), segment(4, b"x"))
    broker.settings["a"]["min.cleanable.dirty.ratio"] = "1.0"
    write_checkpoint(broker.path / CLEANED_OFFSETS, {("a", 0): 2})
    assert not broker.cleaner().clean_filthiest()
    broker.settings["a"]["max.compaction.lag.ms"] = "4000"
    assert broker.cleaner().clean_filthiest()


def test_records_younger_than_the_least_lag_stay(broker: Broker) -> None:
    old = NOW - 100_000
    broker.topic(
        "a", segment(0, b"xx", time_ms=old), segment(2, b"xx"), segment(4, b"x"), min_compaction_lag_ms="50000"
    )
    assert broker.cleaner().clean_filthiest()
    assert broker.values("a") == [b"1", b"2", b"3", b"4"]


def test_an_idle_log_is_rolled_when_its_records_have_to_be_compacted(broker: Broker) -> None:
    broker.topic("a", segment(0, b"xyx", time_ms=NOW - 5000), max_compaction_lag_ms="4000")
    assert broker.cleaner().clean_filthiest()
    assert broker.values("a") == [b"1", b"2"]


def test_the_filthiest_log_is_first(broker: Broker) -> None:
    broker.topic("some", segment(0, b"xx"), segment(2, b"xx"), segment(4, b"x"), min_cleanable_dirty_ratio="0.1")
    broker.topic("most", segment(0, b"xx"), segment(2, b"xx"), segment(4, b"x"))
    write_checkpoint(broker.path / CLEANED_OFFSETS, {("some", 0): 2})
    cleaner = broker.cleaner()
    assert cleaner.clean_filthiest()
    assert broker.states() == {"most": CLEANED, "some": WAITING}
    assert cleaner.clean_filthiest()
    assert broker.states() == {"most": CLEANED, "some": CLEANED}


def test_only_compacted_topics_are_looked_at_and_remembered(broker: Broker) -> None:
    broker.topic("a", segment(0, b"xx"), segment(2, b"x"))
    broker.topic("b", segment(0, b"xx"), segment(2, b"x"), cleanup_policy="delete")
    broker.topic("c", segment(0, b"xx"), segment(2, b"x"), cleanup_policy="compact,delete")
    cleaner = broker.cleaner()
    while cleaner.clean_filthiest():
        pass
    assert broker.values("b") == [b"0", b"1", b"2"]
    assert broker.checkpoint() == {("a", 0): 2, ("c", 0): 2}
    broker.settings["a"]["cleanup.policy"] = "delete"
    cleaner.clean_filthiest()
    assert broker.checkpoint() == {("c", 0): 2}
    broker.partitions.delete("c", 0)
    cleaner.clean_filthiest()
    assert broker.checkpoint() == {}
    assert broker.states() == {}


def test_a_damaged_log_is_left_alone_and_the_others_are_not(broker: Broker) -> None:
    broker.topic("bad", segment(0, b"xx"), segment(2, b"x"))
    path = broker.path / "bad-0" / f"{0:020}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    broker.topic("good", segment(0, b"xx"), segment(2, b"x"))
    cleaner = broker.cleaner()
    while cleaner.clean_filthiest():
        pass
    assert broker.states() == {"bad": UNCLEANABLE, "good": CLEANED}
    assert (cleaner.counts.passes, cleaner.counts.uncleanable) == (1, 1)
    assert broker.checkpoint() == {("good", 0): 2}
    assert path.read_bytes() == content
    assert broker.failed == []


def test_a_directory_that_takes_no_files_is_reported(broker: Broker) -> None:
    broker.topic("a", segment(0, b"xx"), segment(2, b"x"))
    cleaner = broker.cleaner()
    (broker.path / "a-0" / f"{0:020}.log.cleaned").mkdir()
    assert not cleaner.clean_filthiest()
    assert broker.failed == [broker.path]


def test_a_cleaner_that_was_stopped_begins_nothing(broker: Broker) -> None:
    broker.topic("a", segment(0, b"xx"), segment(2, b"x"))
    cleaner = broker.cleaner()
    cleaner.stop()
    assert not cleaner.clean_filthiest()
    assert broker.values("a") == [b"0", b"1", b"2"]


def test_a_log_that_was_cut_counts_as_clean_up_to_its_active_segment_only(broker: Broker) -> None:
    broker.topic("cut", segment(0, b"ab"), segment(2, b"ab"), segment(4, b"a"))
    broker.topic("whole", segment(0, b"ab"), segment(2, b"ab"))
    # Before the cut the log had more segments, and a pass went up to offset 9 of them.
    write_checkpoint(broker.path / CLEANED_OFFSETS, {("cut", 0): 9, ("whole", 0): 2, ("gone", 0): 7})
    cleaner = broker.cleaner()
    cleaner.move_back_checkpoints()
    assert broker.checkpoint() == {("cut", 0): 4, ("whole", 0): 2, ("gone", 0): 7}
    again = broker.cleaner()
    again.move_back_checkpoints()
    assert broker.checkpoint()["cut", 0] == 4


def test_a_pass_takes_as_many_keys_as_the_settings_have_memory_for(broker: Broker) -> None:
    """1 MiB and a little, a hundredth of which may be filled, holds some 400 keys of 24 bytes."""
    broker.config = BrokerConfig(
        {"log.cleaner.dedupe.buffer.size": str(1024**2 + 1), "log.cleaner.io.buffer.load.factor": "0.01"}
    )
    keys = tuple(Record(b"", key=b"key-%d" % number) for number in range(1000))
    full = [Batch(keys, base_offset=base, leader_epoch=0, base_timestamp=NOW).encode() for base in (0, 1000)]
    broker.topic("a", *full, segment(2000, b"x"), min_cleanable_dirty_ratio="0.01")
    cleaner, ends = broker.cleaner(), []
    while cleaner.clean_filthiest():
        ends.append(broker.checkpoint()["a", 0])
    assert ends == sorted(set(ends)), "every pass goes further"
    assert 4 <= len(ends) <= 6
    assert ends[-1] == 2000
    assert len(broker.values("a")) == 1001


def test_a_pass_that_came_no_further_is_followed_by_a_rest(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    class Standing:
        """Passes without any effect."""

        def __init__(self, **_settings: float) -> None: ...

        def clean(self, _partition: Partition, *, first_dirty: int, **_limits: float) -> SimpleNamespace:
            counts = ("keys", "records_read", "records_written", "bytes_read", "bytes_written", "records_without_key")
            more = dict.fromkeys((*counts, "segments_read", "segments_written", "total_ms"), 0)
            return SimpleNamespace(end_offset=first_dirty, files=[], **more)

    monkeypatch.setattr("pybroker.storage.compaction.cleaner.LogCleaner", Standing)
    broker.topic("a", segment(0, b"xx"), segment(2, b"x"))
    cleaner = broker.cleaner()
    assert not cleaner.clean_filthiest(), "after False the thread pauses for log.cleaner.backoff.ms"
    assert broker.states() == {"a": CLEANED}


def test_a_pace_that_lets_no_pass_end_is_logged_at_start_and_when_it_is_set(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    key = "log.cleaner.io.max.bytes.per.second"
    broker.config = BrokerConfig({key: "0"})
    cleaner = broker.cleaner()
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [f"{key}=0.0"]
    broker.config = BrokerConfig({key: "1048576"})
    cleaner.clean_filthiest()
    assert len(caplog.records) == 1
    broker.config = BrokerConfig({key: "1"})
    cleaner.clean_filthiest()
    assert [record.getMessage().split(":")[0] for record in caplog.records[1:]] == [f"{key}=1.0"]


@pytest.mark.parametrize("pace", ["-1", "-0.5", "-Infinity", "Infinity"])
def test_a_negative_pace_is_no_limit(broker: Broker, caplog: pytest.LogCaptureFixture, pace: str) -> None:
    broker.config = BrokerConfig({"log.cleaner.io.max.bytes.per.second": pace})
    broker.topic("a", segment(0, b"xx"), segment(2, b"x"))
    caplog.clear()
    cleaner = broker.cleaner()
    assert caplog.records == []
    assert cleaner.clean_filthiest()
    assert broker.states() == {"a": CLEANED}
