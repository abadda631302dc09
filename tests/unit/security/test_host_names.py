"""Names of hosts that have an address, and those that have none."""

from __future__ import annotations

import asyncio

from pybroker.security.host_names import addresses_of, unresolved_hosts


def test_an_address_is_its_own_and_a_name_has_the_resolvers() -> None:
    found = asyncio.run(addresses_of(["10.0.0.1", "0:0:0:0:0:0:0:1", "localhost", "no.such.host.invalid"]))
    assert found.pop("localhost") in {"127.0.0.1", "::1"}
    assert found == {"10.0.0.1": "10.0.0.1", "0:0:0:0:0:0:0:1": "::1"}


def test_the_zone_of_an_address_goes() -> None:
    found = asyncio.run(addresses_of(["fe80::1%lo", "10.0.0.1%lo"]))
    assert found == {"fe80::1%lo": "fe80::1"}


def test_the_default_entity_is_no_name() -> None:
    assert asyncio.run(unresolved_hosts([None, "127.0.0.1", "no.such.host.invalid"])) == {"no.such.host.invalid"}
