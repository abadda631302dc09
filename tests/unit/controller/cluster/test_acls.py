"""Access control entries: what is taken and refused, which ones a filter deletes, and that records make them again."""

from __future__ import annotations

from typing import cast

import pytest

from pybroker.controller.cluster.acls import CreateAcls, DeleteAcls, DeletedAcls
from pybroker.controller.cluster.events import Result
from pybroker.controller.cluster.machine import ClusterMachine
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import EMPTY_IMAGE, AccessControlEntry
from pybroker.metadata.image_records import image_records
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.schema import ZERO_UUID
from pybroker.security.acl_filter import Filter
from tests.support.controllers import CLUSTER

TOPIC, LITERAL, PREFIXED, READ, WRITE, DENY, ALLOW = 2, 3, 4, 3, 4, 2, 3


def entry(name: str = "a", **changed: object) -> AccessControlEntry:
    made = AccessControlEntry(
        resource_type=TOPIC,
        resource_name=name,
        pattern_type=LITERAL,
        principal="User:alice",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    return made._replace(**changed)  # type: ignore[arg-type]


def create(machine: ClusterMachine, *entries: AccessControlEntry, ids: list[bytes] | None = None) -> list[Result]:
    fresh = (
        ids or [bytes([1, *number.to_bytes(15)]) for number in range(len(machine.image.acls.by_id), 99)][: len(entries)]
    )
    outcome = machine.handle(CreateAcls(entries, fresh), 0)
    for record in outcome.records:
        machine.apply(record)
    return cast("list[Result]", outcome.reply)


def delete(machine: ClusterMachine, *filters: Filter) -> list[DeletedAcls]:
    outcome = machine.handle(DeleteAcls(filters), 0)
    for record in outcome.records:
        machine.apply(record)
    return cast("list[DeletedAcls]", outcome.reply)


def about(**wanted: object) -> Filter:
    everything: dict[str, object] = {
        "resource_type": 1,
        "resource_name": None,
        "pattern_type": 1,
        "principal": None,
        "host": None,
        "operation": 1,
        "permission_type": 1,
    }
    return Filter(**everything | wanted)  # type: ignore[arg-type]


def names(machine: ClusterMachine) -> list[str]:
    return sorted(one.resource_name for one in machine.image.acls.by_id.values())


def test_entries_come_and_go_and_the_same_one_comes_once() -> None:
    machine = ClusterMachine(CLUSTER)
    assert create(machine, entry("a"), entry("b"), entry("a")) == [Result(ErrorCode.NONE)] * 3
    assert create(machine, entry("b")) == [Result(ErrorCode.NONE)]
    assert names(machine) == ["a", "b"]
    (deleted,) = delete(machine, about(resource_name="a"))
    assert deleted == DeletedAcls(Result(ErrorCode.NONE), (entry("a"),))
    assert names(machine) == ["b"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (entry(resource_type=1), "Invalid resourceType ANY"),
        (entry(resource_type=99), "Invalid resourceType UNKNOWN"),
        (entry(pattern_type=1), "Invalid patternType ANY"),
        (entry(pattern_type=2), "Invalid patternType MATCH"),
        (entry(operation=1), "Invalid operation ANY"),
        (entry(operation=99), "Invalid operation UNKNOWN"),
        (entry(permission_type=1), "Invalid permissionType ANY"),
        (entry(""), "Resource name should not be empty"),
        (
            entry(principal="alice"),
            (
                "Could not parse principal from `alice` (no colon is present separating the principal type from the "
                "principal name)"
            ),
        ),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_an_entry_that_only_a_filter_could_be_is_refused_and_the_others_are_not(
    wrong: AccessControlEntry, words: str
) -> None:
    machine = ClusterMachine(CLUSTER)
    assert create(machine, wrong, entry("b")) == [Result(ErrorCode.INVALID_REQUEST, words), Result(ErrorCode.NONE)]
    assert names(machine) == ["b"]


def test_what_an_earlier_part_of_the_request_deleted_is_in_the_answers_of_the_next() -> None:
    machine = ClusterMachine(CLUSTER)
    create(machine, entry("b"))
    outcome = machine.handle(DeleteAcls([about(operation=READ), about(operation=WRITE)], removed=(entry("a"),)), 0)
    deleted = cast("list[DeletedAcls]", outcome.reply)
    assert [one.entries for one in deleted] == [(entry("a"), entry("b")), ()]


def test_an_id_of_zeros_is_refused() -> None:
    (result,) = create(ClusterMachine(CLUSTER), entry(), ids=[ZERO_UUID])
    assert result.error_code is ErrorCode.INVALID_REQUEST


def test_an_entry_that_two_filters_match_is_in_both_answers_and_goes_once() -> None:
    machine = ClusterMachine(CLUSTER)
    create(machine, entry("ab"), entry("a", pattern_type=PREFIXED), entry("*"), entry("b", operation=WRITE))
    by_match, by_operation = delete(machine, about(resource_name="ab", pattern_type=2), about(operation=READ))
    assert sorted(one.resource_name for one in by_match.entries) == ["*", "a", "ab"]
    assert len(by_operation.entries) == 3
    assert names(machine) == ["b"]


def test_a_filter_that_is_none_deletes_nothing() -> None:
    machine = ClusterMachine(CLUSTER)
    create(machine, entry())
    (refused,) = delete(machine, about(pattern_type=99))
    assert refused.result.error_code is ErrorCode.INVALID_REQUEST
    assert names(machine) == ["a"]


def test_the_records_of_an_image_make_its_entries_again() -> None:
    machine = ClusterMachine(CLUSTER)
    create(machine, entry("a"), entry("b", principal="User:*", permission_type=DENY))
    delta = MetadataDelta(EMPTY_IMAGE)
    for record in image_records(machine.image):
        delta.apply(record)
    assert delta.build().acls.by_id == machine.image.acls.by_id
