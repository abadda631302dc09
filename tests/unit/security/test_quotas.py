"""The one place that says how long a client is to wait: every answer with room for that says it."""

from __future__ import annotations

import pytest

from pybroker.handlers import metadata
from pybroker.net import pipeline
from pybroker.security.quotas import Client
from pybroker.testing import Broker
from tests.support.wire import Wire


def test_answers_of_all_kinds_say_how_long_their_client_is_to_wait(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[tuple[str, str | None]] = set()

    def throttle(client: Client) -> int:
        asked.add((str(client.principal), client.client_id))
        return 125

    with Wire(broker.bootstrap_servers, client_id="hasty") as wire:
        assert wire.call("Metadata", 12, topics=None).throttle_time_ms == 0
        for module in (pipeline, metadata):
            monkeypatch.setattr(module, "throttle_time_ms", throttle)
        answers = [
            wire.call("Metadata", 12, topics=None),
            wire.call("ListGroups", 4),
            wire.call("Heartbeat", 4, group_id="", generation_id=1, member_id="m"),
            wire.call("DescribeConfigs", 4, resources=[]),
        ]
    assert [answer.throttle_time_ms for answer in answers] == [125] * len(answers)
    assert asked == {("User:ANONYMOUS", "hasty")}
