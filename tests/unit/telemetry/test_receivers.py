"""Receivers by their names, and what they are handed."""

from __future__ import annotations

import gzip
from collections.abc import Mapping

import pytest

from pybroker.config.errors import ConfigError
from pybroker.telemetry.client import Client, Push
from pybroker.telemetry.receivers import PayloadTooLargeError, Receivers, build_receivers

CLIENT = Client(bytes(16), "c", "n", "v", "127.0.0.1", 1, "User:ANONYMOUS")


class Kept:
    """A receiver of the user's."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties, self.pushes = properties, list[Push]()

    def receive(self, push: Push) -> None:
        self.pushes.append(push)


def test_receivers_are_found_by_name() -> None:
    receivers, last_values = build_receivers(["last-values", f"{__name__}:Kept"], {"a": "b"}, lambda: 0)
    assert receivers[0] is last_values
    assert isinstance(receivers[1], Kept)
    assert receivers[1].properties == {"a": "b"}
    assert build_receivers([], {}, lambda: 0) == ([], None)
    with pytest.raises(ConfigError, match=r"telemetry\.receivers=json:Missing: expected last-values, or module:Class"):
        build_receivers(["json:Missing"], {}, lambda: 0)


def test_a_push_is_decompressed_within_a_bound() -> None:
    kept = Kept({})
    receivers = Receivers([kept])
    push = Push(CLIENT, gzip.compress(bytes(1000)), 1000, False)
    receivers.hand_out(push, 1, 1000).result()
    with pytest.raises(PayloadTooLargeError):
        receivers.hand_out(push, 1, 999).result()
    with pytest.raises(ValueError, match="Gzip"):
        receivers.hand_out(push._replace(payload=b"x"), 1, 999).result()
    receivers.close()
    assert [one.payload for one in kept.pushes] == [bytes(1000)]
