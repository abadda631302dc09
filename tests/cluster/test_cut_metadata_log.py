"""A metadata log that lost its end after kill -9: a start is refused where partitions prove it, else it continues."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.storage.log_dirs.meta_properties import id_text
from pybroker.storage.native import read_topic_ids
from tests.support.batches import batch_of, read_batches
from tests.support.processes import BrokerProcess, NotStartedError
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

SEGMENT = "__cluster_metadata-0/00000000000000000000.log"
TOPICS = ("kept", "lost")


class Killed(NamedTuple):
    """The directory of a broker that was killed, and where its metadata log was when it had only the first topic."""

    directory: Path
    edge: int


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """A broker that had two topics with a record each."""
    directory = tmp_path_factory.mktemp("killed") / "data"
    edge = 0
    with BrokerProcess(directory) as broker, Wire(broker.bootstrap_servers) as wire:
        for topic in TOPICS:
            edge = (directory / SEGMENT).stat().st_size
            with Admin(broker.bootstrap_servers) as admin:
                admin.create_topics([topic])
            assert produced(wire.query(produce(topic, batch_of(topic.encode())))).error_code == 0
        broker.kill()
    return Killed(directory, edge)


def files(directory: Path) -> dict[Path, bytes]:
    """Every file but the lock."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != ".lock"}


def value_of(broker: BrokerProcess, topic: str) -> list[bytes | None]:
    """The record of a topic's partition."""
    with Wire(broker.bootstrap_servers) as wire:
        part = fetched(wire.query(fetch(topic, 0)))
        assert part.error_code == 0
        return [value for batch in read_batches(part.records) for value in batch.values]


@pytest.mark.parametrize("beyond", [0, 30, 90], ids=["at-a-batch", "in-its-header", "in-its-records"])
def test_a_log_cut_before_the_record_of_a_topic_refuses_the_start(
    killed: Killed, tmp_path: Path, make_broker: Callable[..., BrokerProcess], beyond: int
) -> None:
    data = tmp_path / "data"
    shutil.copytree(killed.directory, data)
    with (data / SEGMENT).open("r+b") as segment:
        segment.truncate(killed.edge + beyond)
    before = files(data)
    (topic_id,) = read_topic_ids([str(data / "lost-0")])
    assert isinstance(topic_id, bytes)
    broker = make_broker()
    with pytest.raises(NotStartedError) as refused:
        broker.start()
    assert refused.value.status == 1
    assert f"metadata log {data}/__cluster_metadata-0 lost records" in refused.value.log
    assert f"without a record of lost (topic id {id_text(topic_id)}, {data}/lost-0)" in refused.value.log
    assert "Traceback" not in refused.value.log
    assert files(data) == before, "a start that is refused changes nothing"

    (data / "__cluster_metadata-0" / "accept-loss").touch()
    broker.start()
    assert value_of(broker, "kept") == [b"kept"]
    assert [path.name.partition(".")[0] for path in data.glob("*-stray")] == ["lost-0"]
    assert not (data / "__cluster_metadata-0" / "accept-loss").exists()
    broker.kill()
    broker.start()
    assert value_of(broker, "kept") == [b"kept"]


def test_a_log_cut_without_another_trace_refuses_the_start(killed: Killed, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(killed.directory, data)
    shutil.rmtree(data / "lost-0")
    last = read_batches((data / SEGMENT).read_bytes())[-1]
    with (data / SEGMENT).open("r+b") as segment:
        segment.truncate((data / SEGMENT).stat().st_size - 10)
    with pytest.raises(NotStartedError) as refused:
        BrokerProcess(data).start()
    assert refused.value.status == 1
    proof = f"ends at offset {last.base_offset}, and metadata-log-position has acknowledged offset {last.last_offset}"
    assert proof in refused.value.log


def test_a_write_that_did_not_end_is_cut_and_the_start_continues(killed: Killed, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(killed.directory, data)
    content = (data / SEGMENT).read_bytes()
    last = read_batches(content)[-1]
    torn = (last.base_offset + len(last.values)).to_bytes(8) + last.raw[8:-1]
    with (data / SEGMENT).open("ab") as segment:
        segment.write(torn)
    with BrokerProcess(data) as broker:
        assert {topic: value_of(broker, topic) for topic in TOPICS} == {"kept": [b"kept"], "lost": [b"lost"]}
        assert f"truncated {len(torn)} bytes of an incomplete write" in broker.log
    assert not list(data.glob("*-stray"))
