from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.shown import changed_texts, is_secret


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.x.ssl.keystore.key", True),
        ("listener.name.x.plain.sasl.jaas.config", True),
        ("plain.sasl.jaas.config", True),
        ("my.own.secret.word", True),
        ("log.dirs", False),
        ("ssl.keystore.location", False),
    ],
)
def test_secrets_are_known_by_declaration_or_name(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


def test_only_what_differs_from_a_default_is_shown() -> None:
    config = BrokerConfig({"num.io.threads": "8", "node.id": "5", "ssl.key.password": "word"})
    assert list(changed_texts(config)) == [("node.id", "5"), ("ssl.key.password", "[hidden]")]


@pytest.mark.parametrize("given", [{"node.id": "5"}, {"broker.id": "5"}, {"broker.id": "5", "node.id": "5"}])
def test_a_nodes_id_is_shown_by_the_name_that_the_file_has(given: dict[str, str]) -> None:
    config = BrokerConfig(given)
    assert dict(changed_texts(config)) == given
    assert (config.node_id, config.broker_id) == (5, 5)
