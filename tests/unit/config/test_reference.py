from __future__ import annotations

from pybroker.config.broker import BrokerConfig
from pybroker.config.group import GroupConfig
from pybroker.config.reference import lines
from pybroker.config.topic import TopicConfig


def test_every_key_has_a_row() -> None:
    text = "\n".join(lines())
    for name in (*BrokerConfig.keys, *TopicConfig.keys, *GroupConfig.keys):
        assert f"| `{name}` |" in text
