"""The metadata shell shows what Kafka's shows of the same snapshot, and ZooKeeper's tree has all that the image has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from pybench.peers import java
from pybroker.cli.metadata_shell.image_tree import image_tree
from pybroker.cli.metadata_shell.shell import Shell
from pybroker.cli.metadata_shell.source import read_source
from pybroker.cli.metadata_shell.zookeeper_tree import zookeeper_tree
from pybroker.controller.cluster.events import ConfigChange, NewTopic
from pybroker.controller.quorum.snapshot.snapshots import write_snapshot
from pybroker.metadata.image import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    AccessControlEntry,
    AclsImage,
    ConfigResource,
    DelegationToken,
    MetadataImage,
    ScramCredential,
    ScramImage,
)
from pybroker.metadata.quotas import ClientQuotasImage
from pybroker.metadata.tokens_delta import tokens_image
from tests.support import java_oracle, programs
from tests.support.conditions import wait_until
from tests.support.controllers import running

CREDENTIAL = ScramCredential(b"salt", b"stored", b"server", 4096)


async def an_image(directory: Path) -> MetadataImage:
    """What a controller has, with users, rules, tokens and limits."""
    async with running(directory) as leader:
        epoch = await leader.register()
        await leader.channel.create_topics([NewTopic(name="t", num_partitions=2, replication_factor=1)])
        for resource, values in (
            (ConfigResource(TOPIC_RESOURCE, "t"), {"retention.ms": "1000", "cleanup.policy": "compact"}),
            (ConfigResource(BROKER_RESOURCE, ""), {"log.cleaner.threads": "2"}),
        ):
            await leader.channel.alter_configs([ConfigChange(resource, dict(values))])
        await leader.channel.allocate_producer_ids(1, epoch)
        image = leader.image
    rules = [
        AccessControlEntry(2, "t", 3, "User:alice", "*", 3, 3),
        AccessControlEntry(3, "g", 4, "User:bob", "10.0.0.1", 3, 2),
        AccessControlEntry(4, "kafka-cluster", 3, "User:alice", "*", 12, 3),
    ]
    token = DelegationToken("id", "User:alice", "User:bob", ("User:carol",), 1, 2, 3)
    return msgspec.structs.replace(
        image,
        acls=AclsImage({bytes([0x40 + number]) * 16: rule for number, rule in enumerate(rules)}),
        scram=ScramImage({1: {"alice": CREDENTIAL}, 2: {"alice": CREDENTIAL, "bob": CREDENTIAL}}),
        delegation_tokens=tokens_image([token]),
        quotas=ClientQuotasImage(
            {
                (("client-id", "c(1)"), ("user", "alice")): {"producer_byte_rate": 1024.0, "consumer_byte_rate": 1e9},
                (("user", None),): {"request_percentage": 50.0},
                (("ip", "10.0.0.1"),): {"connection_creation_rate": 5.0},
            }
        ),
    )


def ours(path: Path, root: str) -> list[str]:
    """What our shell shows below a directory of a snapshot."""
    printed: list[str] = []
    image = read_source(path)
    Shell({"image": image_tree(image), **zookeeper_tree(image)}, printed.append).run(["tree", root])
    return printed


def kafkas(path: Path) -> list[str]:
    """What Kafka's shell shows below `/image`, without what ours shows otherwise.

    The shell may show the image that it has before it has read the snapshot.
    """

    def show() -> str:
        shown = java.run_java_tool("metadata-shell", "--snapshot", str(path), "tree", "/image")
        assert shown.returncode == 0, shown.stderr
        return "" if "offset -1, epoch -1" in shown.stdout else shown.stdout

    text = wait_until(show, within=60, what="Kafka's shell has read the snapshot")
    text = re.sub(r"(salt|storedKey|serverKey|iterations)=\w+", r"\1=[hidden]", text)
    return re.sub(r"offset \d+, epoch (\d+), time .*", r"epoch \1", text).splitlines()


def as_kafkas(lines: list[str]) -> list[str]:
    """Our lines, the places of which ours are the better ones left out: the offset of the log, a default entity."""
    text = re.sub(r"offset \d+, ", "", "\n".join(lines))
    default = "  user():\n    request_percentage:\n      50.0\n"
    assert default in text
    # Kafka's has a directory without a name, and nothing in it.
    return text.replace(default, "").replace("clientQuotas:\n", "clientQuotas:\n  :\n").splitlines()


@pytest.mark.java
async def test_the_image_is_shown_as_kafkas_shell_shows_it_whoever_wrote_the_snapshot(tmp_path: Path) -> None:
    programs.kafka_tools()
    image = await an_image(tmp_path / "controller")
    for name in ("ours", "kafkas"):
        (tmp_path / name).mkdir()
    id_ = (image.offset + 1, image.epoch)
    written = write_snapshot(tmp_path / "ours", image, *id_, 5, 1_700_000_000_000)
    with java_oracle.running("SnapshotOracle") as oracle:
        oracle.query(
            "copy", **{"from": str(tmp_path / "ours"), "to": str(tmp_path / "kafkas")}, offset=id_[0], epoch=id_[1]
        )
    shown = ours(tmp_path / "ours", "/image")
    assert kafkas(tmp_path / "ours" / written.file_name) == as_kafkas(shown)
    assert ours(tmp_path / "kafkas", "/image") == shown


async def test_zookeepers_tree_has_rules_users_limits_and_tokens(tmp_path: Path) -> None:
    image = await an_image(tmp_path / "controller")
    written = write_snapshot(tmp_path, image, image.offset + 1, image.epoch, 5, 0)
    hidden = "salt=[hidden],stored_key=[hidden],server_key=[hidden],iterations=4096"

    def text(path: str) -> object:
        (line,) = ours(tmp_path / written.file_name, path)
        return json.loads(line)

    def config(**values: str) -> dict[str, object]:
        return {"version": 1, "config": values}

    def rules(principal: str, permission: str, operation: str, host: str) -> dict[str, object]:
        rule = {"principal": principal, "permissionType": permission, "operation": operation, "host": host}
        return {"version": 1, "acls": [rule]}

    assert text("/kafka-acl/Topic/t") == rules("User:alice", "Allow", "Read", "*")
    assert text("/kafka-acl/Cluster/kafka-cluster") == rules("User:alice", "Allow", "IdempotentWrite", "*")
    assert text("/kafka-acl-extended/prefixed/Group/g") == rules("User:bob", "Deny", "Read", "10.0.0.1")
    assert text("/config/users/alice/clients/c%281%29") == config(
        producer_byte_rate="1024.0", consumer_byte_rate="1.0E9"
    )
    assert text("/config/users/bob") == config(**{"SCRAM-SHA-512": hidden})
    assert text("/config/users/<default>") == config(request_percentage="50.0")
    assert text("/config/ips/*") == config(connection_creation_rate="5.0")
    assert text("/delegation_token/tokens/id") == {
        "version": 3,
        "owner": "User:alice",
        "tokenRequester": "User:bob",
        "renewers": ["User:carol"],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expiryTimestamp": 2,
        "tokenId": "id",
    }
