"""A setting that says it acts is read by the product, so that none is taken and ignored."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pybroker.client.settings
from pybroker.config.broker import BrokerConfig
from pybroker.config.group import GroupConfig
from pybroker.config.key import Key, integer
from pybroker.config.settings import Settings
from pybroker.config.topic import TopicConfig
from tests.support import repository

_OF_LISTENERS = "sasl.oauthbearer."
"""pybroker/config/security/oauth.py reads a listener's keys by what follows this."""


def subclasses(kind: type[Settings]) -> Iterator[type[Settings]]:
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def declared() -> dict[str, Key[Any]]:
    """Every key of brokers, topics, groups and clients, by the class that has it and its name."""
    package = pybroker.client.settings
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    kinds: list[type[Settings]] = [BrokerConfig, TopicConfig, GroupConfig]
    kinds += [kind for kind in subclasses(Settings) if kind.__module__.startswith(package.__name__)]
    return {f"{kind.__name__}: {key.name}": key for kind in kinds for key in kind.keys.values()}


def words_read() -> set[str]:
    """What the product reads: attributes of values, texts, and the fields that the bindings take from objects."""
    read: set[str] = set()
    for path in repository.files():
        if path.startswith("pybroker/") and path.endswith(".py"):
            for node in ast.walk(repository.tree(path)):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    read.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    read.add(node.value)
        elif path.startswith("native/py/src/") and path.endswith(".rs"):
            read.update(re.findall(r"\b(?:self|own|settings)\.(\w+)", repository.text(path)))
    return read


def is_read(key: Key[Any], read: set[str]) -> bool:
    """Whether the product looks at a key's value, by its attribute, its name, or the end of its name."""
    return not read.isdisjoint({key.attribute, key.name, key.name.removeprefix(_OF_LISTENERS)})


def test_every_key_that_acts_has_a_reader() -> None:
    read = words_read()
    unread = [name for name, key in declared().items() if key.acts and not key.is_fixed and not is_read(key, read)]
    assert unread == [], (
        "read the value, or declare the key with acts=False and say in its words why nothing depends on it"
    )


def test_a_key_that_nobody_reads_is_found() -> None:
    class Settled(Settings):
        nobody_reads_this_ms = integer(1, "A key.")

    read = words_read()
    assert not is_read(Settled.keys["nobody.reads.this.ms"], read)
    assert is_read(BrokerConfig.keys["controller.quorum.election.timeout.ms"], read)


def test_a_key_that_is_fixed_takes_nothing_else() -> None:
    fixed = [key for key in declared().values() if key.is_fixed]
    assert fixed
    assert [key.name for key in fixed if key.kind.name == "STRING" and key.check("some other value")] == []
