"""What access control entries allow is what Kafka's StandardAuthorizer says, decision by decision."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from pybroker.metadata.image import AccessControlEntry, AclsImage
from pybroker.security.authorizer import StandardAuthorizer, parse_super_users
from pybroker.security.operations import ALL, OPERATIONS, ResourceType
from tests.support import java_oracle

QUESTIONS = int(os.environ.get("PYBROKER_ACL_QUESTIONS", "4000"))
"""How many questions are asked; `make acl-oracle` asks 100,000."""
OF_A_SET = 40
NAMES = ("a", "ab", "abc", "b", "ba", "a.b", "a*", "kafka-cluster", "x")
USERS = ("User:alice", "User:bob", "User:*", "Group:alice", "User:root")
HOSTS = ("*", "10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1")


def entry(dice: random.Random) -> AccessControlEntry:
    kind = dice.choice((ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER))
    return AccessControlEntry(
        kind,
        dice.choice((*NAMES, "*")),
        dice.choice((3, 4)),
        dice.choice(USERS),
        dice.choice(HOSTS),
        dice.choice((ALL, *OPERATIONS[kind])),
        dice.choice((2, 3, 3)),
    )


def question(dice: random.Random) -> tuple[str, str, int, int, str | None]:
    kind = dice.choice((ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER))
    name = None if dice.random() < 0.2 else dice.choice((*NAMES, "abcd", "c"))
    user = dice.choice(("User:alice", "User:bob", "Group:alice", "User:root"))
    return user, dice.choice(HOSTS[1:]), dice.choice(OPERATIONS[kind]), kind, name


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("AuthorizerOracle") as running:
        yield running


@pytest.mark.java
def test_every_decision_is_kafkas(oracle: java_oracle.JavaOracle) -> None:
    dice = random.Random(59)
    allowed = 0
    ours: StandardAuthorizer | None = None
    for _ in range(QUESTIONS // OF_A_SET):
        entries = list({entry(dice) for _ in range(dice.randrange(12))})
        questions = [question(dice) for _ in range(OF_A_SET)]
        users, if_none = dice.choice(("", "User:root;Group:alice")), dice.random() < 0.3
        expected: Any = oracle.query(
            "authorize", entries=entries, questions=questions, superUsers=users, ifNone=if_none
        )
        ours = StandardAuthorizer(parse_super_users(users), allow_if_none=if_none)
        # By way of other entries, so that what goes and what comes is noted as it is.
        before = {dice.randbytes(16): entry(dice) for _ in range(3)}
        distinct = {one: number for number, one in before.items()}
        ours.follow(AclsImage({number: one for one, number in distinct.items()}))
        ours.follow(AclsImage({dice.randbytes(16): one for one in entries}))
        for (user, host, operation, kind, name), wanted in zip(questions, expected, strict=True):
            if name is None:
                got = ours.allows_on_any(user, host, operation, ResourceType(kind))  # type: ignore[arg-type]
            else:
                got = ours.decide(user, host, operation, ResourceType(kind), name).allowed  # type: ignore[arg-type]
            assert got is wanted, (entries, user, host, operation, kind, name, users, if_none)
            allowed += got
    assert QUESTIONS // 10 < allowed < QUESTIONS * 9 // 10
