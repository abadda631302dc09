"""Three nodes that sign in to each other by tokens that end: replication and controllers go on beyond that."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from pybroker.client import LATEST, Admin, NewTopic, Producer, TopicPartition
from pybroker.config.security.oauth import UNSECURED_CLASS, UNSECURED_LOGIN_CLASS
from pybroker.testing import Cluster
from tests.support.conditions import wait_until

pytestmark = pytest.mark.process

LIFE_S = 6
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def login(user: str) -> str:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    life = f'unsecuredLoginLifetimeSeconds="{LIFE_S}"'
    return f'{module} required unsecuredLoginStringClaim_sub="{user}" {life};'


NODES = {
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "sasl.mechanism.controller.protocol": "OAUTHBEARER",
    "oauthbearer.sasl.jaas.config": login("node"),
    "oauthbearer.sasl.login.callback.handler.class": UNSECURED_LOGIN_CLASS,
    "oauthbearer.sasl.server.callback.handler.class": UNSECURED_CLASS,
    "authorizer.class.name": STANDARD,
    "super.users": "User:node;User:admin",
}
CLIENT = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": login("admin"),
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, properties=NODES, client=CLIENT) as running:
        yield running


def test_nodes_outlive_their_tokens(cluster: Cluster) -> None:
    with (
        Admin(cluster.bootstrap_servers, CLIENT) as admin,
        Producer(cluster.bootstrap_servers, {**CLIENT, "acks": "all"}) as producer,
    ):
        admin.create_topics([NewTopic("kept", 3, 3, configs={"min.insync.replicas": "3"})])
        admin.wait_for_leaders("kept")
        began = {node: len(cluster.log(node)) for node in cluster.brokers}

        def reported(words: str) -> bool:
            return any(words in cluster.log(node)[at:] for node, at in began.items())

        ends, sent = time.time() + LIFE_S, 0

        def outlived() -> bool:
            """Every token that somebody had when this began has ended, and records still reach all replicas."""
            nonlocal sent
            sent += 3
            for partition in range(3):
                producer.send("kept", b"x", partition=partition).result(60)
            return time.time() > ends

        wait_until(outlived, within=60, what="the first tokens have ended")
        for listener in ("SASL_PLAINTEXT", "CONTROLLER"):
            words = f"as User:node again by OAUTHBEARER on {listener}"
            wait_until(lambda words=words: reported(words), within=60, what=words)  # type: ignore[misc]
        assert not reported("tried again"), "no connection was lost over it"
        admin.create_topics([NewTopic("later", 1, 3)])
        cluster.wait_in_sync("later")
        assert sum(partition.offset for partition in admin.list_offsets(ends_of(3)).values()) == sent


def ends_of(partitions: int) -> dict[TopicPartition, int]:
    return {TopicPartition("kept", partition): LATEST for partition in range(partitions)}
