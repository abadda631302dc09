"""The one place that decides: what it denies is refused by the API that was asked, and by nothing else."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest

from pybroker.protocol.errors import ErrorCode
from pybroker.security import authorizer
from pybroker.security.authorizer import Requester, authorized_operations, denied
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.principals import ANONYMOUS
from pybroker.security.requirements import Action
from pybroker.testing import Broker
from tests.support.wire import Wire


class Someone:
    principal = ANONYMOUS
    client_host = "127.0.0.1"
    api_key = 3
    authorizer = None


def test_without_an_authorizer_nothing_is_denied() -> None:
    assert denied(Someone(), [Action(Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster")]) == ()


def test_authorized_operations_are_kafkas_numbers() -> None:
    responded = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
    assert [authorized_operations(Someone(), kind) for kind in responded] == [3576, 3400, 8096]


@pytest.mark.broker(
    properties={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
)
def test_a_denied_request_is_answered_with_the_error_of_the_resources_type(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[tuple[str, str, Action]] = []

    def deny(requester: Requester, actions: Iterable[Action]) -> list[Action]:
        refused = [action for action in actions if action.name != "mine"]
        requested.extend((str(requester.principal), requester.client_host, action) for action in refused)
        return refused

    monkeypatch.setattr(authorizer, "denied", deny)
    with Wire(broker.bootstrap_servers) as wire:
        mine = wire.call("Heartbeat", 3, group_id="mine", generation_id=1, member_id="m")
        others = wire.call("Heartbeat", 3, group_id="others", generation_id=1, member_id="m")
        logs = wire.call("DescribeLogDirs", 3, topics=None)
        metadata = wire.call("Metadata", 12, topics=[])
    assert mine.error_code == ErrorCode.NOT_COORDINATOR
    assert others.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert logs.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert len(metadata.brokers) == 1
    assert requested == [
        ("User:ANONYMOUS", "127.0.0.1", Action(Operation.READ, ResourceType.GROUP, "others")),
        ("User:ANONYMOUS", "127.0.0.1", Action(Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")),
    ]


def test_a_name_of_a_client_begins_no_line_of_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    class Unauthorized:
        principal = ANONYMOUS
        client_host = "127.0.0.1"
        api_key = 12
        authorizer = authorizer.StandardAuthorizer()

    caplog.set_level(logging.INFO, "pybroker.authorizer")
    forged = "x\nPrincipal = User:admin is Allowed operation = READ \u2028\x1b[2K"
    assert not authorizer.allowed(Unauthorized(), Operation.READ, ResourceType.GROUP, forged)
    (line,) = caplog.messages
    assert line.isprintable()
    assert "Group:LITERAL:x\\nPrincipal = User:admin" in line
    assert authorizer.one_line("groß-ü") == "groß-ü"
