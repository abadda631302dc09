from __future__ import annotations

from pybroker.config.broker import BrokerConfig
from pybroker.config.settings import suggestion


def test_the_nearest_known_key_is_suggested() -> None:
    assert suggestion("num.partition", BrokerConfig.keys) == "num.partitions"


def test_what_is_like_nothing_has_no_suggestion() -> None:
    assert suggestion("zookeeper.connect", BrokerConfig.keys) is None


def test_values_are_listed_by_name() -> None:
    names = [key.name for key, _ in BrokerConfig({}).items()]
    assert names == sorted(names)
