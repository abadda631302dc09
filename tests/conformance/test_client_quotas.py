"""Client quotas are altered and described as by Kafka: the same codes and words, and the same lines of its tools."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.quota_admin import ANY_NAME
from pybroker.client.errors import BrokerError
from tests.conformance.conftest import Server, Topic
from tests.conformance.test_config_tools import both_fail, kafkas, ours
from tests.support.conditions import wait_until
from tests.support.wire import Wire

NONE, UNSUPPORTED_VERSION, INVALID_REQUEST = 0, 35, 42
EXACT, DEFAULT, SPECIFIED = 0, 1, 2

IP_WITH_OTHERS = (
    "Invalid entity filter component combination. IP filter component should not be used with user or clientId filter "
    "component."
)

_names = itertools.count(1)


@pytest.fixture
def user() -> str:
    """A user that no other test has given a limit."""
    return f"user-{next(_names)}"


def entry(entity: dict[str, str | None], **ops: float | None) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops.items()],
    }


def alter(wire: Wire, *entries: dict[str, Any], version: int = 1, validate_only: bool = False) -> list[tuple[int, Any]]:
    response = wire.call("AlterClientQuotas", version, entries=list(entries), validate_only=validate_only)
    return [(one.error_code, one.error_message) for one in response.entries]


def component(kind: str, match_type: int, match: str | None) -> dict[str, Any]:
    return {"entity_type": kind, "match_type": match_type, "match": match}


def describe(wire: Wire, *components: dict[str, Any], strict: bool = True, version: int = 1) -> list[Any]:
    response = wire.call("DescribeClientQuotas", version, components=list(components), strict=strict)
    assert response.error_code == NONE
    return sorted(
        (
            sorted((part.entity_type, part.entity_name) for part in one.entity),
            {value.key: value.value for value in one.values},
        )
        for one in response.entries
    )


@pytest.mark.parametrize("version", [0, 1])
def test_limits_are_set_described_and_taken_away(wire: Wire, user: str, version: int) -> None:
    both = {"user": user, "client-id": None}
    by_name = component("user", EXACT, user)
    limits = {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
    done = alter(wire, entry({"user": user}, controller_mutation_rate=0.5), entry(both, **limits), version=version)
    assert done == [(NONE, None)] * 2
    of_user = ([("user", user)], {"controller_mutation_rate": 0.5})
    of_both = ([("client-id", None), ("user", user)], limits)
    wait_until(lambda: len(describe(wire, by_name, strict=False)) == 2, within=60, what="the limits are known")
    assert describe(wire, by_name, version=version) == [of_user]
    assert describe(wire, by_name, strict=False, version=version) == sorted([of_user, of_both])
    assert describe(wire, by_name, component("client-id", DEFAULT, None), version=version) == [of_both]
    assert describe(wire, by_name, component("client-id", SPECIFIED, None), version=version) == [of_both]
    assert describe(wire, by_name, component("client-id", EXACT, "c"), version=version) == []
    assert alter(wire, entry({"user": user}, consumer_byte_rate=1.0), validate_only=True) == [(NONE, None)]
    removed = dict.fromkeys(limits)
    assert alter(wire, entry(both, **removed), version=version) == [(NONE, None)]
    wait_until(lambda: describe(wire, by_name, strict=False) == [of_user], within=60, what="the limits are gone")


@pytest.mark.parametrize(
    ("entity", "ops", "words"),
    [
        ({}, {}, "Invalid empty client quota entity"),
        ({"planet": "x"}, {}, "Unhandled client quota entity type: planet"),
        ({"user": ""}, {}, "Empty user not supported"),
        ({"ip": "no.such.host.invalid"}, {}, "no.such.host.invalid is not a valid IP or resolvable host."),
        (
            {"ip": None, "user": "a"},
            {},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ({"user": "a"}, {"connection_creation_rate": 1.0}, "Invalid configuration key connection_creation_rate"),
        ({"ip": None}, {"request_percentage": 1.0}, "Invalid configuration key request_percentage"),
        ({"user": "a"}, {"producer_byte_rate": -1.0}, "Quota producer_byte_rate must be greater than 0"),
        ({"user": "a"}, {"producer_byte_rate": 1.5}, "producer_byte_rate cannot be a fractional value."),
        ({"user": "a"}, {"consumer_byte_rate": 1e30}, "Proposed value for consumer_byte_rate is too large for a LONG."),
        (
            {"ip": "127.9.9.9"},
            {"connection_creation_rate": 3e9},
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_an_entity_is_refused_with_kafkas_code_and_words(
    wire: Wire, entity: dict[str, str | None], ops: dict[str, float], words: str
) -> None:
    assert alter(wire, entry(entity, **ops)) == [(INVALID_REQUEST, words)]


def test_an_entity_named_twice_is_refused_once(wire: Wire, user: str) -> None:
    twice = [entry({"user": user}, **{key: 1.0}) for key in ("producer_byte_rate", "consumer_byte_rate")]
    words = f"Ignoring duplicate entity ClientQuotaEntity(entries={{user={user}}})"
    assert alter(wire, *twice) == [(INVALID_REQUEST, words)]


@pytest.mark.parametrize(
    ("components", "code", "words"),
    [
        ([("", SPECIFIED, None)], INVALID_REQUEST, "Invalid empty entity type."),
        ([("planet", SPECIFIED, None)], UNSUPPORTED_VERSION, "Unsupported entity type planet"),
        (
            [("user", SPECIFIED, None), ("user", EXACT, "a")],
            INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
        ),
        (
            [("user", EXACT, None)],
            INVALID_REQUEST,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            [("user", DEFAULT, "a")],
            INVALID_REQUEST,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        ([("user", 7, None)], INVALID_REQUEST, "Unknown match type 7"),
        (
            [("user", SPECIFIED, None), ("ip", SPECIFIED, None)],
            INVALID_REQUEST,
            IP_WITH_OTHERS,
        ),
    ],
)
def test_a_filter_is_refused_with_kafkas_code_and_words(
    wire: Wire, components: list[tuple[str, int, str | None]], code: int, words: str
) -> None:
    response = wire.call("DescribeClientQuotas", 1, components=[component(*one) for one in components], strict=False)
    assert (response.error_code, response.error_message, response.entries) == (code, words, None)


def test_an_address_with_a_zone_has_a_limit_and_the_server_goes_on(
    wire: Wire, create: Callable[..., Topic], topic_name: str
) -> None:
    entity: dict[str, str | None] = {"ip": "fe80::1%lo"}
    assert alter(wire, entry(entity, connection_creation_rate=100.0)) == [(NONE, None)]
    create(topic_name)  # what is decided next is put in force too
    requested, limit = (
        component("ip", EXACT, "fe80::1%lo"),
        [([("ip", "fe80::1%lo")], {"connection_creation_rate": 100.0})],
    )
    wait_until(lambda: describe(wire, requested) == limit, within=60, what="the limit is known")
    assert alter(wire, entry(entity, connection_creation_rate=None)) == [(NONE, None)]


def test_our_admin_changes_and_shows_quotas(server: Server, user: str) -> None:
    entity = {"user": user, "client-id": "c"}
    with Admin(server.bootstrap_servers) as admin:
        admin.alter_client_quotas(entity, {"producer_byte_rate": 5})
        there = {(("client-id", "c"), ("user", user)): {"producer_byte_rate": 5.0}}
        wait_until(lambda: admin.describe_client_quotas({"user": user}) == there, within=60, what="the limit is known")
        assert admin.describe_client_quotas({"user": user, "client-id": ANY_NAME}, strict=True) == there
        assert admin.describe_client_quotas({"user": user}, strict=True) == {}
        with pytest.raises(BrokerError, match="must be greater than 0"):
            admin.alter_client_quotas(entity, {"producer_byte_rate": 0})
        admin.alter_client_quotas(entity, {"producer_byte_rate": None})


@pytest.mark.java
def test_quotas_are_changed_and_shown_as_by_kafkas_tool(server: Server, user: str) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers)
    both = ("--entity-type", "clients", "--entity-name", user, "--entity-type", "users", "--entity-default")
    for change in (
        ("--alter", *both, "--add-config", "producer_byte_rate=10485760"),
        ("--alter", "--user", user, "--client-defaults", "--add-config", "request_percentage=12.5"),
        ("--alter", "--ip", "127.9.9.8", "--add-config", "connection_creation_rate=1000000"),
    ):
        assert ours("configs", *at, *change) == kafkas("configs", *at, *change)
    shown = (
        ("--describe", *both),
        ("--describe", "--user", user, "--client-defaults"),
        ("--describe", "--ip", "127.9.9.8"),
    )
    for requested in shown:
        printed = ours("configs", *at, *requested)
        assert len(printed) == 1
        assert printed == kafkas("configs", *at, *requested)
    back = ("--alter", "--ip", "127.9.9.8", "--delete-config", "connection_creation_rate")
    assert kafkas("configs", *at, *back) == ["Completed updating config for ip 127.9.9.8."]
    for wrong in (
        back,
        ("--alter", "--user", user, "--add-config", "request_rate=1"),
        ("--alter", "--client", user, "--add-config", "producer_byte_rate=fast"),
        ("--alter", "--ip-defaults", "--add-config", "producer_byte_rate=1"),
    ):
        both_fail("configs", *at, *wrong)
