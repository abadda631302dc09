"""The producer settings that a streaming write requires, and the rejection of others.

Owns the list and the reasons. `pybroker_spark.source.options` parses options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pybroker_spark.source.errors import OptionError

FORCED: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "acks": (frozenset({"all", "-1"}), "a row counts as written when no failure can take it back"),
    "enable.idempotence": (
        frozenset({"true"}),
        "rows of a repeated task are recognized by producer ids and sequence numbers",
    ),
}
_TRANSACTIONS: Final = "transactional.id"
DELIVERY_TIMEOUT_MS: Final = 120_000
"""The client's default of delivery.timeout.ms."""


def forced_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with the required values. Raises OptionError for a conflicting value."""
    for key, (right, reason) in FORCED.items():
        value = properties.get(key)
        if value is not None and value.strip().lower() not in right:
            only = "all" if key == "acks" else "true"
            raise OptionError(f"kafka.{key}={value}: must be {only} in a streaming write, or left out: {reason}")
    if _TRANSACTIONS in properties:
        raise OptionError(
            f"kafka.{_TRANSACTIONS}={properties[_TRANSACTIONS]}: a streaming write names its transactions"
            " itself (exactly.once=transactions); leave it out"
        )
    return {"client.id": "pybroker-spark", **properties, "acks": "all", "enable.idempotence": "true"}


def flush_seconds(properties: Mapping[str, str]) -> float:
    """Return the seconds after which every record is acknowledged or failed."""
    return float(properties.get("delivery.timeout.ms", DELIVERY_TIMEOUT_MS)) / 1000
