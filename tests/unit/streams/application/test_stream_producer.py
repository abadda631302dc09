from __future__ import annotations

from typing import Any

import pytest

from pybroker.client.transaction.group_metadata import GroupMetadata
from pybroker.streams.application import stream_producer
from pybroker.streams.application.settings import parse_settings
from pybroker.streams.application.stream_producer import StreamProducer


class Recording:
    """A producer that keeps the names of its calls."""

    def __init__(self, servers: str, properties: Any) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.calls.append(name)


def test_records_are_acknowledged_before_offsets_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Recording] = []

    def open_one(servers: str, properties: Any) -> Recording:
        opened.append(Recording(servers, properties))
        return opened[-1]

    monkeypatch.setattr(stream_producer, "Producer", open_one)
    settings = parse_settings({"application.id": "app", "bootstrap.servers": "127.0.0.1:1"})
    StreamProducer(settings, "client", "app-1", lambda _: 1).commit({}, GroupMetadata("app"))
    calls = ["init_transactions", "begin_transaction", "flush", "send_offsets_to_transaction", "commit_transaction"]
    assert opened[0].calls == calls
