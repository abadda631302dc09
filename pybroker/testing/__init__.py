"""Brokers for tests: the same node inside the calling process, ready when the call returns.

Owns the loop thread and the data directory of such a broker. Must not change how a broker behaves: what a test meets
here is what runs in production.

    broker  Broker
    plugin  the pytest fixture `broker`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.testing.broker import Broker as Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> object:
    # pytest imports this package for its plugin in every project; the broker itself is imported by who uses it.
    if name == "Broker":
        from pybroker.testing.broker import Broker

        return Broker
    raise AttributeError(name)
