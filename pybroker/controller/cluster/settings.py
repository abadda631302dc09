"""The configuration of the cluster machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

NEVER = 0
"""Disables an interval."""


class ConfigRules(Protocol):
    """The validation rules of configurations; they depend only on the broker's configuration."""

    def topic_fault(self, configs: Mapping[str, str], /) -> str | None:
        """Return what is wrong with a topic's own configurations, None if they are valid."""

    def broker_fault(self, configs: Mapping[str, str], /, *, broker: int | None) -> str | None:
        """Return what is wrong with the configurations of a broker, or of the cluster default (None); None if valid."""

    def group_fault(self, configs: Mapping[str, str], /) -> str | None:
        """Return what is wrong with a group's own configurations, None if they are valid."""

    def list_inherited(self, resource_type: int, name: str, /) -> tuple[str, ...] | None:
        """Return the inherited items of a list key that the resource does not set, None if the key is no list."""

    def min_insync_replicas(self, configs: Mapping[str, str], /) -> int:
        """Return `min.insync.replicas` of a topic with these configurations of its own."""

    def elects_uncleanly(self, configs: Mapping[str, str], /) -> bool:
        """Return `unclean.leader.election.enable` of a topic with these configurations of its own."""


class TokenSettings(msgspec.Struct, frozen=True):
    """Lifetimes of delegation tokens, and the limit per owner."""

    max_lifetime_ms: int = NEVER
    """From the creation of a token, including all renewals."""
    expiry_ms: int = NEVER
    """From the creation or the last renewal of a token."""
    check_interval_ms: int = NEVER
    """Interval at which expired tokens are removed; never if tokens are disabled."""
    max_per_owner: int | None = None
    """Maximum number of tokens of an owner; None for no limit."""


class ClusterSettings(NamedTuple):
    """Complete; the defaults are in `pybroker.config`."""

    num_partitions: int
    """Used for a new topic with -1 partitions."""
    replication_factor: int
    """Used for a replication factor of -1."""
    session_timeout_ms: int
    """A broker without a heartbeat for this long is fenced."""
    config_rules: ConfigRules
    imbalance_check_interval_ms: int = NEVER
    """Interval of elections of preferred replicas."""
    imbalance_percentage: int = 0
    """Percentage of partitions preferring a broker that may have another leader before such an election."""
    unclean_election_interval_ms: int = NEVER
    """Interval of unclean elections for partitions without a leader, of topics that allow them."""
    no_op_interval_ms: int = NEVER
    """Interval of NoOpRecords, which show that the controller is alive."""
    tokens: TokenSettings = TokenSettings()
