from __future__ import annotations

from pybroker.config.broker import BrokerConfig
from pybroker.config.effective import Setting, effective_settings


def settings(lines: dict[str, int], overrides: dict[str, str], texts: dict[str, str]) -> dict[str, Setting]:
    config = BrokerConfig(texts)
    return {one.name: one for one in effective_settings(config, lines, overrides)}


def test_every_setting_says_where_its_value_comes_from() -> None:
    texts = {
        "broker.id": "3",
        "log.retention.minutes": "4",
        "message.max.bytes": "5",
        "ssl.key.password": "word",
        "listener.name.plaintext.ssl.keystore.password": "word",
    }
    found = settings(dict.fromkeys(texts, 7), {"message.max.bytes": "5"}, texts)
    assert found["message.max.bytes"][:4] == ("message.max.bytes", "5", "override", None)
    assert found["log.retention.minutes"][1:5] == ("4", "file", 7, None)
    assert found["log.retention.ms"][1:5] == ("4", "file", 7, "log.retention.minutes")
    assert found["log.roll.ms"][1:5] == ("168", "synonym", None, "log.roll.hours")
    assert found["node.id"][1:5] == ("3", "file", 7, "broker.id")
    assert found["num.io.threads"][1:5] == ("8", "default", None, None)
    for name in ("ssl.key.password", "listener.name.plaintext.ssl.keystore.password"):
        assert (found[name].value, found[name].secret) == ("[hidden]", True)
    assert found.keys() >= BrokerConfig.keys.keys()
