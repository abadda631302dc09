"""How many requests the control plane has taken, by API and version.

Owns the counters and their text. They are Kafka's `RequestMetrics` as far as they go: `RequestsPerSec` is a rate of
`requests`. What the data plane answers itself does not come here. Used from one event loop.
"""

from __future__ import annotations

import msgspec


class ApiCounts(msgspec.Struct, eq=False):
    """The counts of one version of an API since the broker's start; they only grow."""

    requests: int = 0
    """Requests whose handler was called."""
    failures: int = 0
    """Those of them whose handler raised, so that the whole answer is an error."""


class RequestCounts:
    """The counts of every version of an API that was asked for."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], ApiCounts] = {}

    def of(self, api: str, version: int) -> ApiCounts:
        """Return the counts of a version, which the caller adds to; one object as long as the broker runs."""
        return self._counts.setdefault((api, version), ApiCounts())

    def all(self) -> list[tuple[str, str, ApiCounts]]:
        """Return API, version and counts of all versions that were asked for, by name; any thread may ask."""
        return [(api, str(version), counts) for (api, version), counts in sorted(self._counts.items(), key=_key)]

    def __str__(self) -> str:
        """Every version that was asked for, in the order of names: `CreateTopics v7 1, Metadata v12 31 (2 failed)`."""
        return ", ".join(
            f"{api} v{version} {counts.requests}{f' ({counts.failures} failed)' if counts.failures else ''}"
            for (api, version), counts in sorted(self._counts.items(), key=_key)
            if counts.requests
        )


def _key(item: tuple[tuple[str, int], ApiCounts]) -> tuple[str, int]:
    return item[0]
