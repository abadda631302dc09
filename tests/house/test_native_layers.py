"""Which crate of the native core may use which (docs/adr/0033-a-crate-for-each-room-of-the-native-core.md).

The compiler keeps a crate from naming one that its `Cargo.toml` does not; this keeps the manifests.
"""

from __future__ import annotations

import tomllib
from typing import Any

from tests.support import repository

#: Every room, and the rooms that it may use.
MAY_USE = {
    "sys": set[str](),
    "record": set[str](),
    "wire": {"record"},
    "storage": {"record", "sys"},
    "quorum": {"record"},
    "tls": set[str](),
    "secure": {"tls"},
    "replica": {"record", "wire", "storage", "sys"},
    "net": {"record", "wire", "storage", "replica", "sys", "tls", "secure"},
    "client": {"record", "wire", "tls", "secure"},
    "load": {"client"},
}


def manifest(room: str) -> dict[str, Any]:
    return tomllib.loads(repository.text(f"native/{room}/Cargo.toml"))


def test_every_room_has_its_rule() -> None:
    assert set(repository.rust_rooms()) == MAY_USE.keys()


def test_a_room_depends_only_on_rooms_below_it() -> None:
    depends = {
        room: {
            name.removeprefix("pybroker-") for name in manifest(room)["dependencies"] if name.startswith("pybroker-")
        }
        for room in repository.rust_rooms()
    }
    assert depends == MAY_USE


def test_no_room_has_a_test_layer_in_its_product() -> None:
    injected = [room for room in repository.rust_rooms() if "fault-injection" in str(manifest(room)["dependencies"])]
    assert injected == []
