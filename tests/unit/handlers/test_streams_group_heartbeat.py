"""StreamsGroupHeartbeat: the creation of internal topics with the client's rights, and requests that are rejected."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.coordinator.group.streams.configuration import ConfiguredTopic
from pybroker.coordinator.group.streams.reply import StreamsReply
from pybroker.coordinator.group.streams.status import StatusCode
from pybroker.handlers.errors import ApiError
from pybroker.handlers.streams_group_heartbeat import streams_group_heartbeat
from pybroker.machine.reply import Reply
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import streams_group_heartbeat as message
from pybroker.security.operations import Operation, ResourceType

MISSING = (
    ConfiguredTopic("app-r-repartition", 3, 0, (("cleanup.policy", "delete"),)),
    ConfiguredTopic("app-c-changelog", 3, 2, ()),
)


class Cluster:
    """The coordinator, which reports missing topics, and the controller, which creates them."""

    def __init__(self, *codes: ErrorCode, streams_version: int = 1) -> None:
        self.created: list[Any] = []
        self._codes = codes
        controller = SimpleNamespace(create_topics=self._create)

        async def published(_offset: int) -> None:
            """Wait for nothing."""

        image = SimpleNamespace(features=SimpleNamespace(levels={"streams.version": streams_version}), offset=7)
        services = SimpleNamespace(
            groups=SimpleNamespace(submit=self._submit),
            controller=SimpleNamespace(active=lambda: controller),
            publisher=SimpleNamespace(published=published),
            image=lambda: image,
        )
        self.context: Any = SimpleNamespace(
            version=1, client_id="c", client_host="h", services=services, image=image, authorizer=None
        )

    def _submit(self, _group_id: str, _event: Any) -> Reply:
        status = message.Status(status_code=StatusCode.MISSING_INTERNAL_TOPICS, status_detail="Missing")
        reply = Reply()
        reply(StreamsReply(message.StreamsGroupHeartbeatResponse(status=[status]), MISSING), None)
        return reply

    async def _create(self, topics: Any) -> list[Any]:
        self.created += topics
        return [
            SimpleNamespace(name=topic.name, error_code=code, error_message=None)
            for topic, code in zip(topics, self._codes, strict=True)
        ]

    async def detail(self) -> str:
        """Send a heartbeat; returns the detail of the status."""
        response = await streams_group_heartbeat(message.StreamsGroupHeartbeatRequest(group_id="g"), self.context)
        assert response.status is not None
        return response.status[0].status_detail


async def test_missing_topics_are_created_with_their_counts_and_configs() -> None:
    cluster = Cluster(ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    assert await cluster.detail() == "Missing"
    made = [(topic.name, topic.num_partitions, topic.replication_factor) for topic in cluster.created]
    assert made == [("app-r-repartition", 3, -1), ("app-c-changelog", 3, 2)]
    assert [(config.name, config.value) for config in cluster.created[0].configs] == [("cleanup.policy", "delete")]


async def test_a_failed_creation_is_in_the_detail() -> None:
    cluster = Cluster(ErrorCode.NONE, ErrorCode.INVALID_REPLICATION_FACTOR)
    assert await cluster.detail() == "Missing; Creation failed: app-c-changelog (INVALID_REPLICATION_FACTOR)."


async def test_a_denied_creation_creates_no_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()

    def allowed(_context: Any, _operation: Operation, kind: ResourceType, name: str, **_: Any) -> bool:
        return kind is ResourceType.TOPIC and name == "app-c-changelog"

    monkeypatch.setattr("pybroker.handlers.streams_group_heartbeat.allowed", allowed)
    monkeypatch.setattr("pybroker.handlers.streams_group_heartbeat.may", allowed)
    assert await cluster.detail() == "Missing; Unauthorized to CREATE on topics app-r-repartition."
    assert cluster.created == []


async def test_the_feature_is_required() -> None:
    with pytest.raises(ApiError) as raised:
        await Cluster(streams_version=0).detail()
    assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("__consumer_offsets", "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is"),
        ("a b", "Topic names a b are not valid topic names."),
    ],
)
async def test_topic_names_are_checked(name: str, words: str) -> None:
    topology = message.Topology(subtopologies=[message.Subtopology(source_topics=[name])])
    request = message.StreamsGroupHeartbeatRequest(group_id="g", topology=topology)
    with pytest.raises(ApiError, match=words) as raised:
        await streams_group_heartbeat(request, Cluster().context)
    assert raised.value.code == ErrorCode.STREAMS_INVALID_TOPOLOGY
