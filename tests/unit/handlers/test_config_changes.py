from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.broker.live_config import LiveConfig
from pybroker.config.broker import BrokerConfig
from pybroker.handlers.registry import registered_apis
from pybroker.metadata.image import BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.alter_configs import AlterableConfig as Whole
from pybroker.protocol.messages.alter_configs import AlterConfigsRequest
from pybroker.protocol.messages.alter_configs import AlterConfigsResource as WholeResource
from pybroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from pybroker.security.authorizer import StandardAuthorizer
from pybroker.security.principals import ANONYMOUS

OWN, OTHER, UNKNOWN = 1, 2, 99


class Context:
    """What a broker with two registered brokers, whose settings are the defaults, knows."""

    def __init__(self, authorizer: StandardAuthorizer | None = None) -> None:
        self.authorizer, self.principal, self.client_host, self.api_key = authorizer, ANONYMOUS, "127.0.0.1", 44
        config = BrokerConfig({"node.id": str(OWN), "log.dirs": "/x"})
        self.services = SimpleNamespace(config=config, config_rules=LiveConfig(config))
        self.image = SimpleNamespace(
            configs=SimpleNamespace(of_broker=lambda _broker: {}),
            cluster=SimpleNamespace(brokers={OWN: None, OTHER: None}),
        )
        self.role = ListenerRole.BROKER


def resource(name: object, *configs: tuple[str, int, str], of: int = BROKER_RESOURCE) -> AlterConfigsResource:
    made = [AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in configs]
    return AlterConfigsResource(resource_type=of, resource_name=str(name), configs=made)


def check(request: Any, authorizer: StandardAuthorizer | None = None) -> Any:
    return registered_apis()[type(request).__message__.api_key].prepare(request, Context(authorizer))  # type: ignore[arg-type]


THREADS = ("num.io.threads", 0, "100")
TOO_MANY = "value should not be greater than double the current value 8"


@pytest.mark.parametrize("name", ["", OWN, OTHER])
def test_what_agrees_and_what_is_of_others_is_forwarded_as_it_came(name: object) -> None:
    changes = [] if name == OWN else [THREADS]
    request = IncrementalAlterConfigsRequest(
        resources=[resource(name, ("log.retention.ms", 0, "1000"), *changes), resource("t", THREADS, of=TOPIC_RESOURCE)]
    )
    assert check(request) is None


def test_what_contradicts_this_brokers_start_is_refused_and_the_rest_forwarded() -> None:
    rest = [resource(OTHER, THREADS), resource("t", ("retention.ms", 0, "1"), of=TOPIC_RESOURCE)]
    request = IncrementalAlterConfigsRequest(
        resources=[rest[0], resource(OWN, THREADS), rest[1], resource(UNKNOWN, THREADS)], validate_only=True
    )
    checked = check(request)
    assert checked.request == IncrementalAlterConfigsRequest(resources=rest, validate_only=True)
    responded = [
        AlterConfigsResourceResponse(error_code=code, error_message=None, resource_type=it.resource_type)
        for code, it in zip((0, 3), rest, strict=True)
    ]
    outcomes = checked.complete(IncrementalAlterConfigsResponse(responses=responded)).responses
    assert [outcome.error_code for outcome in outcomes] == [0, ErrorCode.INVALID_REQUEST, 3, ErrorCode.INVALID_REQUEST]
    assert TOO_MANY in outcomes[1].error_message
    assert outcomes[3].error_message == f"Unexpected broker id, expected {OWN}, but received {UNKNOWN}"
    assert len(request.resources) == 4, "the request is left as it was"


def test_nothing_is_forwarded_where_nothing_is_left() -> None:
    configs = [Whole(name="num.io.threads", value="100")]
    whole = AlterConfigsRequest(
        resources=[WholeResource(resource_type=BROKER_RESOURCE, resource_name=str(OWN), configs=configs)]
    )
    checked = check(whole)
    assert checked.request is None
    (outcome,) = checked.complete(None).responses
    assert TOO_MANY in outcome.error_message


def test_an_item_added_to_what_is_no_list_is_refused_here() -> None:
    checked = check(IncrementalAlterConfigsRequest(resources=[resource(OWN, ("num.io.threads", 2, "9"))]))
    (outcome,) = checked.complete(None).responses
    assert (outcome.error_code, outcome.error_message) == (
        ErrorCode.INVALID_CONFIG,
        "Can't APPEND to key num.io.threads because its type is not LIST.",
    )


def test_loggers_are_changed_here_and_the_rest_is_forwarded() -> None:
    level = resource(OWN, ("kafka.network", 0, "ERROR"), of=BROKER_LOGGER_RESOURCE)
    request = IncrementalAlterConfigsRequest(resources=[level, resource("t", THREADS, of=TOPIC_RESOURCE)])
    prepared = check(request)
    assert logging.getLogger("pybroker.net").level == logging.ERROR
    assert [one.resource_name for one in prepared.request.resources] == ["t"]
    topic = AlterConfigsResourceResponse(error_code=0, resource_type=TOPIC_RESOURCE, resource_name="t")
    outcomes = prepared.complete(IncrementalAlterConfigsResponse(responses=[topic])).responses
    assert [(one.resource_name, one.error_code) for one in outcomes] == [(str(OWN), 0), ("t", 0)]


@pytest.mark.parametrize(
    ("name", "change", "code", "words"),
    [
        (OTHER, ("kafka", 0, "INFO"), ErrorCode.INVALID_REQUEST, "Unexpected node id. Expected 1, but received 2"),
        ("x", ("kafka", 0, "INFO"), ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: x"),
        (
            OWN,
            ("kafka", 2, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            OWN,
            ("kafka", 9, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "Unknown operation type 9 is not allowed for the BROKER_LOGGER resource",
        ),
        (OWN, ("nobody", 0, "INFO"), ErrorCode.INVALID_CONFIG, "Logger nobody does not exist!"),
    ],
)
def test_levels_that_cannot_be_are_refused(
    name: object, change: tuple[str, int, str], code: ErrorCode, words: str
) -> None:
    prepared = check(IncrementalAlterConfigsRequest(resources=[resource(name, change, of=BROKER_LOGGER_RESOURCE)]))
    assert prepared.request is None
    (outcome,) = prepared.complete(None).responses
    assert (outcome.error_code, outcome.error_message) == (code, words)


def test_levels_need_the_right_to_alter_the_cluster() -> None:
    level = resource(OWN, ("kafka.network", 0, "ERROR"), of=BROKER_LOGGER_RESOURCE)
    (outcome,) = check(IncrementalAlterConfigsRequest(resources=[level]), StandardAuthorizer()).complete(None).responses
    assert outcome.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert logging.getLogger("pybroker.net").level == logging.NOTSET
