"""Replicas that say where they are: how many, and until when."""

from __future__ import annotations

from pybroker.controller.quorum.transport.announced_replicas import MOST, STAY_S, AnnouncedReplica, AnnouncedReplicas
from pybroker.controller.quorum.voters.voter_set import VoterEndpoint


def replica(node_id: int, seen_s: float = 0.0, port: int = 1) -> AnnouncedReplica:
    return AnnouncedReplica(node_id, bytes([node_id]) * 16, VoterEndpoint("CONTROLLER", "h", port), seen_s)


def test_a_guest_is_new_once_and_again_when_it_moves() -> None:
    announced = AnnouncedReplicas()
    assert announced.greet(5, replica(5))
    assert not announced.greet(5, replica(5, seen_s=1.0))
    assert announced.greet(5, replica(5, port=2))


def test_a_silent_guest_is_forgotten() -> None:
    announced = AnnouncedReplicas()
    announced.greet(1, replica(1))
    announced.greet(2, replica(2, seen_s=STAY_S))
    assert announced.leave(STAY_S + 1) == [1]
    assert list(announced.all) == [2]


def test_there_are_only_so_many_guests() -> None:
    announced = AnnouncedReplicas()
    assert all(announced.greet(number, replica(number)) for number in range(MOST))
    assert not announced.greet(MOST, replica(MOST))
    assert len(announced.all) == MOST
