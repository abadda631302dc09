"""Delegation tokens in the controller: their ends, who may change them, and that those which have ended go."""

from __future__ import annotations

import tracemalloc
from typing import Any

from pybroker.controller.cluster.delegation_tokens import (
    MAX_REMOVALS,
    CreateToken,
    ExpireToken,
    RemoveEndedTokens,
    RenewToken,
    TokenEnd,
    first_sweep,
)
from pybroker.controller.cluster.machine import ClusterMachine, Event
from pybroker.controller.cluster.settings import TokenSettings
from pybroker.machine.machine import Outcome
from pybroker.metadata.image import DelegationToken, MetadataImage
from pybroker.metadata.tokens_delta import tokens_image
from pybroker.protocol.errors import ErrorCode
from pybroker.security.delegation_tokens import DelegationTokens
from tests.support.controllers import CLUSTER

DAY = 86_400_000
SETTINGS = CLUSTER._replace(tokens=TokenSettings(7 * DAY, DAY, 3_600_000))
NOT_FOUND, MISMATCH = ErrorCode.DELEGATION_TOKEN_NOT_FOUND, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
EXPIRED = ErrorCode.DELEGATION_TOKEN_EXPIRED


def step(machine: ClusterMachine, event: Event, now: int = 0) -> Outcome[Any, Any]:
    outcome = machine.handle(event, now)
    for record in outcome.records:
        machine.apply(record)
    return outcome


def create(machine: ClusterMachine, token_id: str = "t", max_lifetime_ms: int = -1, wall_ms: int = 0) -> Any:
    event = CreateToken(token_id, "User:alice", "User:root", ("User:bob",), max_lifetime_ms, wall_ms)
    return step(machine, event).reply


def test_a_token_lives_as_long_as_it_asks_within_the_settings() -> None:
    machine = ClusterMachine(SETTINGS)
    assert create(machine, wall_ms=5) == DelegationToken(
        token_id="t",
        owner="User:alice",
        requester="User:root",
        renewers=("User:bob",),
        issued_ms=5,
        expires_ms=5 + DAY,
        ends_ms=5 + 7 * DAY,
    )
    assert create(machine, "short", 1000).ends_ms == 1000
    assert create(machine, "short", 1000).expires_ms == 1000
    assert create(machine, "long", 30 * DAY).ends_ms == 7 * DAY
    assert machine.image.delegation_tokens.by_id.keys() == {"t", "short", "long"}


def ends(machine: ClusterMachine, event: Event) -> int:
    reply = step(machine, event).reply
    assert isinstance(reply, TokenEnd)
    return reply.expires_ms


def test_owner_and_renewers_renew_until_the_longest_life_is_over() -> None:
    machine = ClusterMachine(SETTINGS)
    create(machine)
    for name, requested, at, until in (
        ("alice", -1, 1000, 1000 + DAY),
        ("bob", 1000, 2000, 3000),
        ("bob", 0, 2000, 2000 + DAY),
        ("bob", 9 * DAY, 2000, 2000 + DAY),
    ):
        renewed = step(machine, RenewToken("t", f"User:{name}", requested, at))
        assert renewed.reply == TokenEnd(ErrorCode.NONE, until)
        assert machine.image.delegation_tokens.by_id["t"].expires_ms == until
    for day in range(1, 7):
        step(machine, RenewToken("t", "User:bob", -1, day * DAY))
    assert ends(machine, RenewToken("t", "User:bob", -1, 7 * DAY - 1)) == 7 * DAY
    assert step(machine, RenewToken("t", "User:bob", -1, 7 * DAY + 1)).reply == TokenEnd(EXPIRED)


def test_others_change_nothing() -> None:
    machine = ClusterMachine(SETTINGS)
    create(machine)
    for event, code in (
        (RenewToken("other", "User:alice", -1, 0), NOT_FOUND),
        (RenewToken("t", "User:root", -1, 0), MISMATCH),
        (ExpireToken("t", "User:eve", -1, 0), MISMATCH),
        (ExpireToken("t", "User:eve", -1, 2 * DAY), MISMATCH),
        (ExpireToken("t", "User:alice", 0, 2 * DAY), EXPIRED),
        (RenewToken("t", "User:alice", -1, 2 * DAY), EXPIRED),
    ):
        outcome = step(machine, event)
        assert (outcome.records, outcome.reply) == ((), TokenEnd(code)), event


def test_a_token_ends_when_it_is_said_or_goes_at_once() -> None:
    machine = ClusterMachine(SETTINGS)
    create(machine)
    assert ends(machine, ExpireToken("t", "User:bob", 100, 1000)) == 1100
    assert ends(machine, ExpireToken("t", "User:bob", 30 * DAY, 1000)) == 7 * DAY
    assert step(machine, ExpireToken("t", "User:alice", -1, 9 * DAY)).reply == TokenEnd(ErrorCode.NONE, 9 * DAY)
    assert machine.image.delegation_tokens.by_id == {}


def test_tokens_that_have_ended_go_in_parts_by_the_time_of_day() -> None:
    machine = ClusterMachine(SETTINGS)
    for number in range(MAX_REMOVALS + 1):
        create(machine, f"t{number}", 1000)
    create(machine, "lives", 5000)
    timer = first_sweep(SETTINGS, 100, epoch_ms=-100)[0]
    assert timer.deadline_ms == 100 + 3_600_000
    assert timer.event == RemoveEndedTokens(-100)
    assert step(machine, RemoveEndedTokens(0), now=1000).records == ()
    first = step(machine, RemoveEndedTokens(-1000), now=3000)
    assert (len(first.records), first.timers[0].deadline_ms) == (MAX_REMOVALS, 3000)
    last = step(machine, RemoveEndedTokens(-1000), now=3000)
    assert (len(last.records), last.timers[0].deadline_ms) == (1, 3000 + 3_600_000)
    assert machine.image.delegation_tokens.by_id.keys() == {"lives"}


def test_nobody_looks_for_tokens_where_there_are_none() -> None:
    assert first_sweep(CLUSTER, 0, epoch_ms=0) == []


def test_an_owner_has_no_more_tokens_than_the_settings_allow() -> None:
    machine = ClusterMachine(CLUSTER._replace(tokens=TokenSettings(7 * DAY, DAY, 3_600_000, max_per_owner=2)))
    for token_id in ("one", "two"):
        assert isinstance(create(machine, token_id), DelegationToken)
    rejected = create(machine, "three")
    assert rejected.error_code is ErrorCode.POLICY_VIOLATION
    assert "User:alice has 2 delegation tokens (delegation.token.max.per.owner=2)" in rejected.error_message
    assert machine.image.delegation_tokens.by_id.keys() == {"one", "two"}
    other = CreateToken("four", "User:bob", "User:root", (), -1, 0)
    assert isinstance(step(machine, other).reply, DelegationToken)
    step(machine, RenewToken("one", "User:alice", -1, 1000))  # A renewed token counts once.
    step(machine, ExpireToken("two", "User:alice", -1, 1000))
    assert dict(machine.image.delegation_tokens.owned) == {"User:alice": 1, "User:bob": 1}
    assert isinstance(create(machine, "three"), DelegationToken)
    for token_id in ("one", "three"):
        step(machine, ExpireToken(token_id, "User:alice", -1, 1000))
    assert dict(machine.image.delegation_tokens.owned) == {"User:bob": 1}


def test_a_token_costs_the_same_however_many_there_are() -> None:
    tokens = [
        DelegationToken(f"t{number}", f"User:u{number % 100}", "User:root", (), 0, DAY, DAY) for number in range(20_000)
    ]
    machine = ClusterMachine(SETTINGS, MetadataImage(delegation_tokens=tokens_image(tokens)))
    proofs = DelegationTokens("secret", lambda: machine.image.delegation_tokens, lambda: 0)
    assert proofs.find(proofs.hmac("t5")) == tokens[5]
    tracemalloc.start()
    try:
        made = create(machine, "new")
        assert proofs.find(proofs.hmac("new")) == made
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000, "a copy of 20,000 entries has more than a megabyte"
