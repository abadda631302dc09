"""Brokers for tests: the same node inside the calling process, ready when the call returns.

Owns the loop thread and the data directory of such a broker, and the faults that a test asks for. Must not change how a
broker behaves that was asked for none: what a test meets here is what runs in production.

    broker       Broker
    controls     what a test asks of a broker, by Kafka's names
    arguments    what each argument of a call can be, and the words about a wrong one
    names        APIs and errors by Kafka's names
    faults       which requests a fault concerns, and its count
    interceptor  what becomes of the requests that the data plane stops
    answers      errors of every API, narrowed versions
    requests     a request as it came, and the log of those
    clock        the broker's time, which can be set ahead
    security     what a listener asks for, and what clients need then
    settings     settings as a test gives them, as texts
    ports        addresses that stay a broker's while it is down
    async_broker AsyncBroker
    cluster      Cluster, brokers in processes of their own
    plugin       the pytest fixtures `broker`, `async_broker`, `session_broker` and `topic`
    made_faults  the faults that a test has made, for the plugin
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.testing.async_broker import AsyncBroker as AsyncBroker
    from pybroker.testing.broker import Broker as Broker
    from pybroker.testing.cluster import Cluster as Cluster
    from pybroker.testing.faults import Fault as Fault
    from pybroker.testing.faults import Outcome as Outcome
    from pybroker.testing.plugin import UnfiredFaultWarning as UnfiredFaultWarning
    from pybroker.testing.requests import Request as Request
    from pybroker.testing.requests import RequestLog as RequestLog

_MODULES = {
    "AsyncBroker": "async_broker",
    "Broker": "broker",
    "Cluster": "cluster",
    "Fault": "faults",
    "Outcome": "faults",
    "Request": "requests",
    "RequestLog": "requests",
    "UnfiredFaultWarning": "plugin",
}

__all__ = ["AsyncBroker", "Broker", "Cluster", "Fault", "Outcome", "Request", "RequestLog", "UnfiredFaultWarning"]


def __getattr__(name: str) -> object:
    # pytest imports this package for its plugin in every project; the broker itself is imported by who uses it.
    if name in _MODULES:
        return getattr(import_module(f"pybroker.testing.{_MODULES[name]}"), name)
    raise AttributeError(name)
