"""The metadata log is Kafka's: its dump tool decodes every record that a controller writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybroker.controller.cluster.events import ConfigChange, NewTopic
from pybroker.controller.cluster.settings import ClusterSettings
from pybroker.controller.local_channel import LocalChannel
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.service import Controller
from pybroker.metadata.features import SUPPORTED_FEATURES
from pybroker.metadata.image import TOPIC_RESOURCE, ConfigResource
from pybroker.protocol.messages.create_topics import CreatableTopicConfig
from tests.support import kafka_tools, programs
from tests.support.config_rules import BadIsWrong

SEGMENT = "00000000000000000000.log"


async def write_one_of_each_record(directory: Path) -> None:
    settings = ClusterSettings(2, 1, 9000, BadIsWrong())
    controller = Controller(settings, QuorumSettings(directory, "c", 1, voters=(1,)))
    await controller.open()
    await controller.start()
    channel = LocalChannel(controller)
    epochs: dict[int, int] = {}
    for broker in (1, 2):
        registered = await channel.register_broker(
            broker,
            incarnation_id=bytes([broker]) * 16,
            listeners={"PLAINTEXT": ("localhost", 9092 + broker)},
            security_protocols={"PLAINTEXT": 0},
            rack="r",
            log_dirs=(bytes([100 + broker]) * 16,),
            features=SUPPORTED_FEATURES,
            fenced=broker == 2,
        )
        epochs[broker] = registered.broker_epoch
    await channel.heartbeat(2, epochs[2])
    config = CreatableTopicConfig(name="retention.ms", value="1000")
    await channel.create_topics([NewTopic(name="t", num_partitions=4, replication_factor=2, configs=[config])])
    await channel.heartbeat(2, epochs[2], want_fence=True)
    await channel.alter_configs([ConfigChange(ConfigResource(TOPIC_RESOURCE, "t"), {"retention.ms": None})])
    await channel.allocate_producer_ids(1, epochs[1])
    await channel.delete_topics(["t"])
    await channel.unregister_broker(2)
    await controller.stop()


@pytest.mark.java
async def test_kafkas_dump_tool_decodes_every_metadata_record(tmp_path: Path) -> None:
    programs.kafka_tools()
    await write_one_of_each_record(tmp_path)
    segment = tmp_path / DIRECTORY_NAME / SEGMENT
    dumped = kafka_tools.run("dump-log", "--cluster-metadata-decoder", "--files", str(segment))
    assert dumped.returncode == 0, dumped.stderr
    lines = dumped.stdout.splitlines()
    assert [line for line in lines if line.startswith("baseOffset:") and "isvalid: true" not in line] == []
    assert 'LeaderChange: {"version":0,"leaderId":1,"voters":[{"voterId":1}]' in dumped.stdout
    records = [json.loads(line.split("payload: ")[1]) for line in lines if "payload: " in line]
    assert {record["type"] for record in records} == {
        "FEATURE_LEVEL_RECORD",
        "REGISTER_BROKER_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "TOPIC_RECORD",
        "CONFIG_RECORD",
        "PARTITION_RECORD",
        "PARTITION_CHANGE_RECORD",
        "PRODUCER_IDS_RECORD",
        "REMOVE_TOPIC_RECORD",
        "UNREGISTER_BROKER_RECORD",
    }
