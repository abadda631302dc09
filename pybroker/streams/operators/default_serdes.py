"""Access to the default serdes of a topology from an operator."""

from __future__ import annotations

from typing import Any, Protocol, cast

from pybroker.streams.processor import ProcessorContext
from pybroker.streams.serdes import DefaultSerdes, Serde


class SerdeContext(Protocol):
    """The context of a node with the default serdes of its topology. The runtime's context implements it."""

    default_key_serde: Serde[Any] | None
    default_value_serde: Serde[Any] | None


def default_serdes(context: ProcessorContext) -> DefaultSerdes:
    """Return the default serdes of keys and of values (`default.key.serde`, `default.value.serde`)."""
    serdes = cast(SerdeContext, context)
    return DefaultSerdes(serdes.default_key_serde, serdes.default_value_serde)
