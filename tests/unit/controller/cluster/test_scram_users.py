"""Users of SCRAM: what of a request is taken, what is refused, and that the records make the same state again."""

from __future__ import annotations

from typing import cast

from pybroker.controller.cluster.events import AlteredUser, AlterScramUsers, ScramDeletion, ScramUpsertion
from pybroker.controller.cluster.machine import ClusterMachine
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import EMPTY_IMAGE, MetadataImage
from pybroker.metadata.image_records import image_records
from pybroker.protocol.errors import ErrorCode
from pybroker.security.scram import salted_password, server_key, stored_key
from pybroker.security.scram_mechanisms import SCRAM_SHA_256, SCRAM_SHA_512
from tests.support.controllers import CLUSTER

SALTED = salted_password(SCRAM_SHA_256, "secret", b"salt", 4096)
SHA_256, SHA_512 = SCRAM_SHA_256.number, SCRAM_SHA_512.number
TWICE = "A user credential cannot be altered twice in the same request"


def given(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> ScramUpsertion:
    return ScramUpsertion(name, mechanism, iterations, b"salt", SALTED)


def alter(
    machine: ClusterMachine, upsertions: list[ScramUpsertion], deletions: list[ScramDeletion] | None = None
) -> list[AlteredUser]:
    outcome = machine.handle(AlterScramUsers(deletions or [], upsertions), 0)
    for record in outcome.records:
        machine.apply(record)
    return cast("list[AlteredUser]", outcome.reply)


def test_a_user_comes_changes_and_goes() -> None:
    machine = ClusterMachine(CLUSTER)
    assert alter(machine, [given("alice"), given("bob", SHA_512)]) == [AlteredUser("alice"), AlteredUser("bob")]
    credential = machine.image.scram.of(SHA_256)["alice"]
    assert credential.stored_key == stored_key(SCRAM_SHA_256, SALTED)
    assert credential.server_key == server_key(SCRAM_SHA_256, SALTED)
    alter(machine, [given("alice", iterations=8192)])
    assert machine.image.scram.of(SHA_256)["alice"].iterations == 8192
    alter(machine, [], [ScramDeletion("alice", SHA_256)])
    assert machine.image.scram.by_mechanism.keys() == {SHA_512}


def test_each_user_is_refused_by_itself_in_kafkas_words() -> None:
    machine = ClusterMachine(CLUSTER)
    upsertions = [
        given("few", iterations=4095),
        given("many", iterations=16385),
        given(""),
        given("odd", mechanism=3),
        given("twice"),
        given("twice", SHA_512),
        given("there"),
        ScramUpsertion("open", SHA_256, 4096, b"salt", b""),
    ]
    code = ErrorCode.UNACCEPTABLE_CREDENTIAL
    altered = alter(machine, upsertions, [ScramDeletion("nobody", SHA_256)])
    assert {one.name: (one.error_code, one.error_message) for one in altered} == {
        "nobody": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
        "few": (code, "Too few iterations"),
        "many": (code, "Too many iterations"),
        "": (code, "Username must not be empty"),
        "odd": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        "twice": (ErrorCode.DUPLICATE_RESOURCE, TWICE),
        "there": (ErrorCode.NONE, None),
        "open": (code, "Salted password must not be empty"),
    }
    assert machine.image.scram.of(SHA_256).keys() == {"there"}
    assert machine.image.scram.of(SHA_512) == {}


def test_a_snapshot_has_the_users_and_another_state_becomes_it() -> None:
    machine = ClusterMachine(CLUSTER)
    alter(machine, [given("alice"), given("bob", SHA_512)])
    again, other = MetadataDelta(EMPTY_IMAGE), ClusterMachine(CLUSTER)
    for record in image_records(machine.image):
        again.apply(record)
    assert again.build().scram == machine.image.scram
    alter(other, [given("carol"), given("alice", iterations=5000)])
    became = MetadataDelta(other.image)
    became.become(machine.image)
    assert became.build().scram == machine.image.scram
    removed = MetadataDelta(machine.image)
    removed.become(MetadataImage())
    assert removed.build().scram.by_mechanism == {}


def test_no_secret_is_shown() -> None:
    machine = ClusterMachine(CLUSTER)
    alter(machine, [given("alice")])
    assert str(machine.image.scram.of(SHA_256)) == "{'alice': ScramCredential([hidden])}"
    assert "salt" not in repr(given("alice"))
