"""Clients of a broker with an admin listener: a page is read back as it was rendered, and two pages are rates."""

from __future__ import annotations

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.top.clients import Client, ClientUse, parse_addresses, parse_page, query_clients
from pybroker.cli.top.rates import build_view
from pybroker.cli.top.sampling import Sample
from pybroker.config.errors import ConfigError
from pybroker.metrics.exposition import render
from pybroker.metrics.metric import Sample as Value
from tests.support.processes import free_port

ODD = 'a"b\\c\nd}'


def test_what_a_page_says_of_clients_is_read_as_it_was_meant() -> None:
    page = "".join(
        render(
            [
                ("kafka_server_produce_bytes", [Value(15_000.0, ("alice", "")), Value(1e16, ("", ODD))]),
                ("kafka_server_produce_throttle_time_seconds", [Value(1.5, ("alice", "")), Value(0.0, ("", ODD))]),
                ("kafka_server_fetch_bytes", [Value(7.0, ("alice", ""))]),
                ("kafka_server_fetch_throttle_time_seconds", [Value(0.25, ("alice", ""))]),
                ("kafka_server_request_throttle_time_seconds", [Value(9.0, ("bob", ""))]),
            ]
        )
    )
    assert parse_page(page) == {
        Client("alice", ""): ClientUse(15_000.0, 7.0, 1.75),
        Client("", ODD): ClientUse(1e16, 0.0, 0.0),
    }


def test_rates_are_what_pages_have_grown_by_and_the_busiest_come_first() -> None:
    old, slow, fast, new = (Client("", name) for name in ("old", "slow", "fast", "new"))
    before = {old: ClientUse(100.0), slow: ClientUse(10.0, 10.0, 1.0), fast: ClientUse()}
    now = {old: ClientUse(50.0), slow: ClientUse(30.0, 20.0, 2.0), fast: ClientUse(4e6), new: ClientUse(7.0)}
    view = build_view(Sample(1.0, 1, {}, {}, 0, {}, 0, before), Sample(3.0, 1, {}, {}, 0, {}, 0, now))
    assert [row.cells() for row in view.clients] == [
        ("*", "fast", "2.0M", "0", "0%"),
        ("*", "slow", "10", "5.0", "50%"),
        ("*", "new", "0", "0", "0%"),
        ("*", "old", "0", "0", "0%"),
    ]


def test_an_address_that_is_none_or_does_not_answer_is_named() -> None:
    assert parse_addresses("one:9404,[::1]:9405") == [("one", 9404), ("::1", 9405)]
    with pytest.raises(ConfigError, match="--metrics=here"):
        parse_addresses("here")
    port = free_port()
    with pytest.raises(CommandError, match=rf"--metrics 127.0.0.1:{port}: .*refused; expected the admin listener"):
        query_clients([("127.0.0.1", port)])
