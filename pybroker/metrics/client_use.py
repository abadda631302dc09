"""Metrics of each client's use of its quotas and limits.

Owns the mapping from an entity's numbers to metrics. An entity is the user, the client id, both, or the address that
a quota applies to. Must not know where the numbers are counted (the data plane, and
`pybroker.security.mutation_quotas`), or exported.

Clients without a quota have no series, since nothing is counted for them (docs/adr/0092).
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from pybroker.metrics.metric import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Family = tuple[str, Iterable[Sample]]
    Use = tuple[str, str, int, int]
    """User and client id, empty if the quota applies to all; the use; throttle time in ms."""
    MutationUse = tuple[str, str, float, int, int]
    """User and client id; partitions that may be created now; partitions created; throttle time in ms."""

_NANOSECONDS_PER_S = 1e9
_MS_PER_S = 1000
_NAME_LETTERS = 128
"""Longest name that is exported unchanged. Names from the data plane are already shortened."""


class ClientUses(Protocol):
    """The counts of a data plane, each with the number of omitted entities."""

    @property
    def produce(self) -> tuple[list[Use], int]:
        """Bytes."""

    @property
    def fetch(self) -> tuple[list[Use], int]:
        """Bytes."""

    @property
    def request(self) -> tuple[list[Use], int]:
        """Nanoseconds."""

    @property
    def addresses(self) -> tuple[list[tuple[str, int]], int]:
        """Connections."""


def of_clients(uses: ClientUses | None, mutations: tuple[Sequence[MutationUse], int]) -> Iterator[Family]:
    """Yield the use by clients; `uses` is None where no data plane serves clients.

    `mutations` contains the number of omitted entities.
    """
    made, made_omitted = mutations
    omitted = {"ControllerMutation": made_omitted}
    if uses is not None:
        quotas = {"Produce": uses.produce, "Fetch": uses.fetch, "Request": uses.request}
        omitted |= {quota: left_out for quota, (_, left_out) in quotas.items()}
        yield from _of_data_plane(quotas)
        addresses, left_out = uses.addresses
        omitted["ip"] = left_out
        yield (
            "kafka_server_socket_server_metrics_ip_connection_accept",
            [Sample(accepted, (address,)) for address, accepted in addresses],
        )
    prefix = "kafka_server_controllermutation"
    shown = [((_shown(use[0]), _shown(use[1])), use) for use in made]
    yield f"{prefix}_tokens", [Sample(tokens, who) for who, (_, _, tokens, _, _) in shown]
    yield f"{prefix}_partitions", [Sample(partitions, who) for who, (_, _, _, partitions, _) in shown]
    yield (
        f"{prefix}_throttle_time_seconds",
        [Sample(waited_ms / _MS_PER_S, who) for who, (_, _, _, _, waited_ms) in shown],
    )
    yield "pybroker_metrics_clients_omitted", [Sample(left_out, (quota,)) for quota, left_out in omitted.items()]


def _of_data_plane(quotas: Mapping[str, tuple[list[Use], int]]) -> Iterator[Family]:
    for quota, unit, of in (
        ("Produce", "bytes", 1),
        ("Fetch", "bytes", 1),
        ("Request", "request_time_seconds", _NANOSECONDS_PER_S),
    ):
        prefix, (rows, _) = f"kafka_server_{quota.lower()}", quotas[quota]
        yield f"{prefix}_{unit}", [Sample(used / of, (user, client_id)) for user, client_id, used, _ in rows]
        yield (
            f"{prefix}_throttle_time_seconds",
            [Sample(waited_ms / _MS_PER_S, (user, client_id)) for user, client_id, _, waited_ms in rows],
        )


def _shown(name: str) -> str:
    """Return a client-chosen name. A long name is truncated, with its hash appended."""
    if len(name) <= _NAME_LETTERS:
        return name
    return f"{name[:_NAME_LETTERS]}...{sha256(name.encode(errors='replace')).hexdigest()[:16]}"
