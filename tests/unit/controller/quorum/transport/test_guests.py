"""Replicas that say where they are: how many, and until when."""

from __future__ import annotations

from pybroker.controller.quorum.transport.guests import MOST, STAY_S, Guest, Guests
from pybroker.controller.quorum.voters.voter_set import VoterEndpoint


def guest(node_id: int, seen_s: float = 0.0, port: int = 1) -> Guest:
    return Guest(node_id, bytes([node_id]) * 16, VoterEndpoint("CONTROLLER", "h", port), seen_s)


def test_a_guest_is_new_once_and_again_when_it_moves() -> None:
    guests = Guests()
    assert guests.greet(5, guest(5))
    assert not guests.greet(5, guest(5, seen_s=1.0))
    assert guests.greet(5, guest(5, port=2))


def test_a_silent_guest_is_forgotten() -> None:
    guests = Guests()
    guests.greet(1, guest(1))
    guests.greet(2, guest(2, seen_s=STAY_S))
    assert guests.leave(STAY_S + 1) == [1]
    assert list(guests.all) == [2]


def test_there_are_only_so_many_guests() -> None:
    guests = Guests()
    assert all(guests.greet(number, guest(number)) for number in range(MOST))
    assert not guests.greet(MOST, guest(MOST))
    assert len(guests.all) == MOST
