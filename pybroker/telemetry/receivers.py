"""The receivers of client metrics, and the thread on which they run.

Owns the loading of receivers (`telemetry.receivers`), and that a push is decompressed and passed on off the loop,
one at a time. Must not know which pushes are accepted.

A class of the user, `module:Class`, is instantiated with the node's properties, and must have the method `receive`
of `Receiver`. Its exceptions are logged, and the client gets INVALID_RECORD, after which it stops pushing. It
corresponds to Kafka's `org.apache.kafka.server.telemetry.ClientTelemetry`.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from pybroker.config.errors import ConfigError
from pybroker.config.keys.telemetry_keys import LAST_VALUES
from pybroker.telemetry.last_values import LastValues
from pybroker.telemetry.native import decompress
from pybroker.telemetry.otlp import find_decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from pybroker.telemetry.client import Push

log = logging.getLogger("pybroker.telemetry")


class PayloadTooLargeError(Exception):
    """A payload decompresses to more than `telemetry.max.bytes`."""


class Receiver(Protocol):
    """The interface of a receiver."""

    def receive(self, push: Push) -> None:
        """Process a push; called on the receivers' thread, one push at a time."""


class Receivers:
    """Passes pushes to every receiver."""

    def __init__(self, receivers: Sequence[Receiver]) -> None:
        self._receivers = tuple(receivers)
        self._thread = ThreadPoolExecutor(1, "pybroker-telemetry")

    def hand_out(self, push: Push, codec: int, max_bytes: int) -> Future[None]:
        """Decompress a payload and pass it on. The future gets PayloadTooLargeError, or a receiver's exception."""
        return self._thread.submit(self._hand_out, push, codec, max_bytes)

    def close(self) -> None:
        """Wait for the push in progress; accept no more."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _hand_out(self, push: Push, codec: int, max_bytes: int) -> None:
        payload = decompress(codec, push.payload, max_bytes)
        if payload is None:
            raise PayloadTooLargeError(f"more than {max_bytes} bytes when decompressed")
        whole = push._replace(payload=payload)
        for receiver in self._receivers:
            receiver.receive(whole)


def build_receivers(
    names: Sequence[str], properties: Mapping[str, str], now_ms: Callable[[], int]
) -> tuple[list[Receiver], LastValues | None]:
    """Return the receivers of `telemetry.receivers`, and the built-in one among them.

    Raises ConfigError for a class that cannot be loaded.
    """
    receivers: list[Receiver] = []
    last_values = None
    for name in filter(None, names):
        if name == LAST_VALUES:
            last_values = LastValues(now_ms, find_decoder())
            receivers.append(last_values)
            continue
        module, _, attribute = name.partition(":")
        try:
            receivers.append(getattr(import_module(module), attribute)(properties))
        except Exception as error:
            words = f"{LAST_VALUES}, or module:Class that can be loaded and called with the properties: {error!r}"
            raise ConfigError("telemetry.receivers", name, words) from error
    return receivers, last_values
