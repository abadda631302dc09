"""Brokers for tests: the same node inside the calling process, ready when the call returns.

Owns the loop thread and the data directory of such a broker, and the faults that a test injects. A broker without
faults must behave exactly as in production.

    broker       Broker
    controls     the fault injection of a broker, by Kafka's names
    arguments    valid values of each argument of a call, and the error messages
    names        APIs and errors by Kafka's names
    faults       the requests that a fault applies to, and its count
    interceptor  decides about the requests that the data plane stops
    responses    error responses of every API, limited versions
    requests     a received request, and the log of recorded requests
    clock        the broker's clock, which a test can advance
    security     security of a listener, and the settings of its clients
    settings     settings of a test, as texts
    ports        addresses that stay reserved while a broker is down
    async_broker AsyncBroker
    cluster      Cluster, brokers in processes of their own
    plugin       the pytest fixtures `broker`, `async_broker`, `session_broker` and `topic`
    made_faults  the faults that a test has created, for the plugin
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
    # pytest imports this package for its plugin in every project. The broker itself is imported on first use.
    if name in _MODULES:
        return getattr(import_module(f"pybroker.testing.{_MODULES[name]}"), name)
    raise AttributeError(name)
