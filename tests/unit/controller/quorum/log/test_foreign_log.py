"""A directory of Kafka's: a snapshot without a Raft index, features of parts that are not here, an open transaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.controller.cluster.events import NewTopic
from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.foreign_log import check_whole, mark_of
from pybroker.controller.quorum.log.metadata_log import MetadataLog
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot, write_snapshot
from pybroker.controller.quorum.voters.voter_set import VoterNode, VoterSet
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.features import INITIAL_LEVELS
from pybroker.metadata.loader import Loader
from pybroker.protocol.messages.records.begin_transaction import BeginTransactionRecord
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from tests.support.controllers import Running, build, running

UNKNOWN = -1


async def create(one: Running, name: str) -> None:
    await one.channel.create_topics([NewTopic(name=name, num_partitions=1, replication_factor=1)])


async def leave_as_kafka_would(directory: Path) -> None:
    """A topic in a snapshot without a Raft index, the log beginning where it ends."""
    async with running(directory) as one:
        await one.register()
        await create(one, "before")
        delta = MetadataDelta(one.image)
    delta.apply(FeatureLevelRecord(name="share.version", feature_level=1))
    image = delta.build()
    write_snapshot(directory / DIRECTORY_NAME, image, image.offset + 1, image.epoch, UNKNOWN, 7)
    log = MetadataLog(QuorumSettings(directory, "c", 1, (1,)), lambda: 7)
    log.restart_at(image.offset + 1)
    log.close()


async def test_the_only_voter_goes_on_behind_kafkas_snapshot(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await leave_as_kafka_would(tmp_path)
    async with running(tmp_path) as one:
        assert list(one.image.topics.by_name) == ["before"]
        assert one.image.features.levels == INITIAL_LEVELS | {"share.version": 1}
        await one.register()  # which no level of a part that is not here forbids
        await create(one, "after")
    assert "The cluster has feature share.version at level 1, which this version does not use" in caplog.text
    async with running(tmp_path) as one:
        assert set(one.image.topics.by_name) == {"before", "after"}


async def test_several_voters_are_refused_with_what_helps(tmp_path: Path) -> None:
    await leave_as_kafka_would(tmp_path)
    snapshot = newest_snapshot(tmp_path / DIRECTORY_NAME)
    assert snapshot is not None
    end = f"The log ends in epoch {snapshot.epoch} at offset {snapshot.end_offset}"
    with pytest.raises(
        MetadataLogError, match=rf"{snapshot.path} is a snapshot of Apache Kafka,.* {end}\. .* the only one"
    ):
        await build(tmp_path, voters=(1, 2)).controller.open()
    named = VoterSet.of([VoterNode(1, b"1" * 16), VoterNode(2, b"2" * 16)])
    with pytest.raises(MetadataLogError, match="remove-controller leave that one"):
        mark_of(snapshot, named, 1)


async def test_who_has_led_alone_leaves_a_snapshot_that_several_voters_begin_with(tmp_path: Path) -> None:
    await leave_as_kafka_would(tmp_path)
    async with running(tmp_path):
        pass
    made = newest_snapshot(tmp_path / DIRECTORY_NAME)
    assert made is not None
    mark = mark_of(made, VoterSet.of([VoterNode(1), VoterNode(2)]), 2)
    assert mark is not None
    assert mark.raft_index == made.end_offset, (
        "entries are counted from the end of Kafka's snapshot, and hold one record"
    )


def test_a_log_that_ends_inside_of_a_transaction_is_kafkas_to_end() -> None:
    loader = Loader()
    check_whole(loader)
    loader.load([BeginTransactionRecord()], 0, 1)
    with pytest.raises(MetadataLogError, match="start Kafka on it once"):
        check_whole(loader)
