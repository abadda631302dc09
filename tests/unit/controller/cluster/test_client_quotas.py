"""Client quotas are set and taken away, and what is refused is refused in Kafka's words."""

from __future__ import annotations

import math
from typing import cast

import pytest

from pybroker.controller.cluster.client_quotas import AlterClientQuotas, AlteredQuotas, QuotaAlteration, one_of_each
from pybroker.controller.cluster.machine import ClusterMachine
from pybroker.metadata.quotas import quota_entity
from pybroker.protocol.errors import ErrorCode
from tests.support.controllers import CLUSTER

ANN = quota_entity([("user", "ann")])
BOTH = quota_entity([("user", "ann"), ("client-id", None)])
ADDRESS = quota_entity([("ip", "10.0.0.1")])


def alter(
    machine: ClusterMachine,
    *alterations: QuotaAlteration,
    unresolved: tuple[str, ...] = (),
    validate_only: bool = False,
) -> list[AlteredQuotas]:
    event = AlterClientQuotas(one_of_each(alterations), frozenset(unresolved), validate_only)
    outcome = machine.handle(event, 0)
    for record in outcome.records:
        machine.apply(record)
    return cast("list[AlteredQuotas]", outcome.reply)


def test_limits_come_change_and_go_and_what_stays_leaves_no_record() -> None:
    machine = ClusterMachine(CLUSTER)
    given = QuotaAlteration(BOTH, [("producer_byte_rate", 5.0), ("request_percentage", 12.5)])
    assert alter(machine, given, QuotaAlteration(ANN, [("controller_mutation_rate", 0.5)])) == [
        AlteredQuotas(BOTH),
        AlteredQuotas(ANN),
    ]
    assert machine.image.quotas.by_entity == {
        BOTH: {"producer_byte_rate": 5.0, "request_percentage": 12.5},
        ANN: {"controller_mutation_rate": 0.5},
    }
    same = AlterClientQuotas([given, QuotaAlteration(ANN, [("consumer_byte_rate", None)])])
    assert machine.handle(same, 0).records == ()
    alter(machine, QuotaAlteration(BOTH, [("producer_byte_rate", None), ("request_percentage", 1.0)]))
    alter(machine, QuotaAlteration(ANN, [("controller_mutation_rate", None)]))
    assert machine.image.quotas.by_entity == {BOTH: {"request_percentage": 1.0}}


def test_validation_alone_changes_nothing() -> None:
    machine = ClusterMachine(CLUSTER)
    assert alter(machine, QuotaAlteration(ANN, [("consumer_byte_rate", 1.0)]), validate_only=True) == [
        AlteredQuotas(ANN)
    ]
    assert machine.image.quotas.by_entity == {}


@pytest.mark.parametrize(
    ("entity", "ops", "words"),
    [
        ([], [], "Invalid empty client quota entity"),
        ([("planet", "x")], [], "Unhandled client quota entity type: planet"),
        ([("user", "")], [], "Empty user not supported"),
        ([("ip", "h")], [], "h is not a valid IP or resolvable host."),
        (
            [("ip", None), ("user", "a")],
            [],
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ([("user", "a")], [("connection_creation_rate", 1.0)], "Invalid configuration key connection_creation_rate"),
        ([("ip", None)], [("producer_byte_rate", 1.0)], "Invalid configuration key producer_byte_rate"),
        ([("user", "a")], [("producer_byte_rate", 0.0)], "Quota producer_byte_rate must be greater than 0"),
        ([("user", "a")], [("request_percentage", math.nan)], "Quota request_percentage must be greater than 0"),
        ([("user", "a")], [("producer_byte_rate", 1.5)], "producer_byte_rate cannot be a fractional value."),
        (
            [("user", "a")],
            [("producer_byte_rate", math.inf)],
            "Proposed value for producer_byte_rate is too large for a LONG.",
        ),
        (
            [("ip", None)],
            [("connection_creation_rate", 3e9)],
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
        (
            [("user", "a")],
            [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)],
            "Ignoring duplicate entity ClientQuotaEntity(entries={user=a})",
        ),
    ],
)
def test_an_entity_is_refused_by_itself_in_kafkas_words(
    entity: list[tuple[str, str | None]], ops: list[tuple[str, float | None]], words: str
) -> None:
    machine = ClusterMachine(CLUSTER)
    wrong = quota_entity(entity)
    good = QuotaAlteration(ADDRESS, [("connection_creation_rate", 7.0)])
    refused, done = alter(machine, QuotaAlteration(wrong, ops), good, unresolved=("h",))
    assert refused == AlteredQuotas(wrong, ErrorCode.INVALID_REQUEST, words)
    assert done == AlteredQuotas(ADDRESS)
    assert machine.image.quotas.by_entity == {ADDRESS: {"connection_creation_rate": 7.0}}


def test_an_entity_that_is_named_twice_is_answered_once_and_changes_nothing() -> None:
    machine = ClusterMachine(CLUSTER)
    (refused,) = alter(
        machine, *(QuotaAlteration(ANN, [(key, 1.0)]) for key in ("producer_byte_rate", "consumer_byte_rate"))
    )
    assert refused.error_code is ErrorCode.INVALID_REQUEST
    assert machine.image.quotas.by_entity == {}
