"""Snapshots of the metadata are Kafka's: its tools decode ours, and its image is ours, there and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pybroker.controller.cluster.events import ConfigChange, NewTopic
from pybroker.controller.quorum.log.bootstrap import read_bootstrap, write_bootstrap
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot, read_image, write_snapshot
from pybroker.metadata.image import TOPIC_RESOURCE, ConfigResource, MetadataImage
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.voters import Endpoint, Voter, VotersRecord
from tests.support import java_oracle, kafka_tools, programs
from tests.support.controllers import running

VOTERS = VotersRecord(
    voters=[
        Voter(
            voter_id=1,
            voter_directory_id=b"d" * 16,
            endpoints=[Endpoint(name="CONTROLLER", host="localhost", port=9093)],
        )
    ]
)


async def an_image(directory: Path) -> MetadataImage:
    """What a controller has after one of each."""
    async with running(directory) as leader:
        epoch = await leader.register()
        for name, partitions in (("a", 3), ("b", 1500)):
            await leader.channel.create_topics([NewTopic(name=name, num_partitions=partitions, replication_factor=1)])
        resource = ConfigResource(TOPIC_RESOURCE, "a")
        await leader.channel.alter_configs([ConfigChange(resource, {"retention.ms": "1000"})])
        await leader.channel.allocate_producer_ids(1, epoch)
        return leader.image


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("SnapshotOracle") as running_oracle:
        yield running_oracle


@pytest.mark.java
async def test_kafka_loads_what_we_wrote_and_we_load_what_kafka_wrote(
    oracle: java_oracle.JavaOracle, tmp_path: Path
) -> None:
    image = await an_image(tmp_path / "controller")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    write_snapshot(ours, image, image.offset + 1, image.epoch, 5, 1_700_000_000_000, voters=VOTERS)
    response = oracle.query(
        "copy", **{"from": str(ours), "to": str(theirs)}, offset=image.offset + 1, epoch=image.epoch
    )
    assert response == {"timestamp": 1_700_000_000_000, "topics": 2, "brokers": 1}
    snapshot = newest_snapshot(theirs)
    assert snapshot is not None
    assert (snapshot.end_offset, snapshot.epoch, snapshot.raft_index) == (image.offset + 1, image.epoch, -1)
    read = read_image(snapshot.path)
    # Kafka keeps no offset at which a level changed.
    assert msgspec.structs.replace(read, features=image.features) == image
    assert read.features.levels == image.features.levels


@pytest.mark.java
async def test_kafkas_dump_tool_decodes_every_record_of_a_snapshot(tmp_path: Path) -> None:
    programs.kafka_tools()
    image = await an_image(tmp_path / "controller")
    snapshot = write_snapshot(tmp_path, image, image.offset + 1, image.epoch, 5, 1_700_000_000_000, voters=VOTERS)
    path = tmp_path / snapshot.file_name
    dumped = kafka_tools.run("dump-log", "--cluster-metadata-decoder", "--files", str(path))
    assert dumped.returncode == 0, dumped.stderr
    lines = dumped.stdout.splitlines()
    assert [line for line in lines if line.startswith("baseOffset:") and "isvalid: true" not in line] == []
    for control in ("SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"):
        assert f"{control} " in dumped.stdout
    records = [json.loads(line.split("payload: ")[1]) for line in lines if "payload: {" in line]
    assert {record["type"] for record in records} == {
        "FEATURE_LEVEL_RECORD",
        "REGISTER_BROKER_RECORD",
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "CONFIG_RECORD",
        "PRODUCER_IDS_RECORD",
    }


@pytest.mark.java
def test_what_kafkas_storage_tool_writes_is_read_and_the_other_way_round(tmp_path: Path) -> None:
    programs.kafka_tools()
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"
        f"log.dirs={tmp_path / 'data'}\n"
    )
    formatted = kafka_tools.run(
        "storage", "format", "-t", "AAAAAAAAQACAAAAAAAAAAQ", "-c", str(properties), "--standalone"
    )
    assert formatted.returncode == 0, formatted.stderr
    levels = read_bootstrap(tmp_path / "data")
    assert levels is not None
    assert FeatureLevelRecord(name="group.version", feature_level=1) in levels
    first = newest_snapshot(tmp_path / "data" / "__cluster_metadata-0")
    assert first is not None
    assert first.voters is not None
    assert [(voter.voter_id, voter.endpoints[0].port) for voter in first.voters.voters] == [(1, 9093)]
    written = write_bootstrap(tmp_path, levels, 7)
    dumped = kafka_tools.run("dump-log", "--cluster-metadata-decoder", "--files", str(written))
    assert dumped.returncode == 0, dumped.stderr
    assert dumped.stdout.count('"type":"FEATURE_LEVEL_RECORD"') == len(levels)
