"""Which servers are asked, in which order, and when a client begins at its bootstrap servers again."""

from __future__ import annotations

from pybroker.client.network.server_list import ServerList
from pybroker.client.settings import ConnectionSettings


def servers(**settings: str) -> ServerList:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    made = ServerList(ConnectionSettings.from_properties({"bootstrap.servers": "b:1,b:2", **named}))
    made.learn({1: "n:1", 2: "n:2"})
    return made


def test_what_is_connected_comes_first_and_what_is_silent_last() -> None:
    assert servers().in_order(["n:2", "n:1"], ["n:1"]) == ["n:2", "b:1", "b:2", "n:1"]


def test_what_failed_comes_after_what_did_not_until_it_is_connected_again() -> None:
    known = servers()
    known.failed("n:1")
    assert known.in_order(["n:1"], []) == ["n:2", "b:1", "b:2", "n:1"]
    known.connected("n:1")
    assert known.in_order([], [])[0] == "n:1"


def test_without_rebootstrapping_only_known_nodes_are_asked_once_there_are_any() -> None:
    none = {"metadata.recovery.strategy": "none"}
    assert servers(metadata_recovery_strategy="none").in_order([], []) == ["n:1", "n:2"]
    assert not servers(metadata_recovery_strategy="none").rebootstrap()
    fresh = ServerList(ConnectionSettings.from_properties({"bootstrap.servers": "b:1", **none}))
    assert fresh.in_order([], []) == ["b:1"]


def test_metadata_that_stays_away_leads_back_to_the_bootstrap_servers() -> None:
    known = servers(metadata_recovery_rebootstrap_trigger_ms="1000")
    assert [known.is_rebootstrap_due(now) for now in (5.0, 5.9, 6.0)] == [False, False, True]
    known.learn({1: "n:1"})
    assert not known.is_rebootstrap_due(7.0)
    assert known.rebootstrap()
    assert known.in_order([], []) == ["b:1", "b:2"]
    never = servers(metadata_recovery_strategy="none", metadata_recovery_rebootstrap_trigger_ms="0")
    assert not never.is_rebootstrap_due(0.0)
