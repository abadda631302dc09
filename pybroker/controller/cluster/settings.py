"""What the cluster machine is configured with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

NEVER = 0
"""Stands for no interval."""


class ConfigRules(Protocol):
    """What is known of the configurations of resources; it depends on the broker's settings alone."""

    def topic_fault(self, configs: Mapping[str, str], /) -> str | None:
        """Return what is wrong with a topic's own configurations, None for nothing."""

    def broker_fault(self, configs: Mapping[str, str], /, *, broker: int | None) -> str | None:
        """Return what is wrong with those of one broker, or of the default of all (None); None for nothing."""

    def group_fault(self, configs: Mapping[str, str], /) -> str | None:
        """Return what is wrong with a group's own configurations, None for nothing."""

    def list_inherited(self, resource_type: int, name: str, /) -> tuple[str, ...] | None:
        """Return the items that a list has where its resource does not set it, None for what is no list."""

    def min_insync_replicas(self, configs: Mapping[str, str], /) -> int:
        """Return `min.insync.replicas` of a topic with these configurations of its own."""

    def elects_uncleanly(self, configs: Mapping[str, str], /) -> bool:
        """Return `unclean.leader.election.enable` of a topic with these configurations of its own."""


class TokenSettings(msgspec.Struct, frozen=True):
    """How long delegation tokens live, and how many an owner has."""

    max_lifetime_ms: int = NEVER
    """From when it was made, however often it is renewed."""
    expiry_ms: int = NEVER
    """From when it was made or renewed."""
    check_interval_ms: int = NEVER
    """How often tokens that have ended are removed; never where there are none."""
    max_per_owner: int | None = None
    """How many tokens an owner has at most; None for no bound."""


class ClusterSettings(NamedTuple):
    """Complete; the defaults are in `pybroker.config`."""

    num_partitions: int
    """What -1 partitions of a new topic means."""
    replication_factor: int
    """What a replication factor of -1 means."""
    session_timeout_ms: int
    """A broker that is silent for longer is fenced."""
    config_rules: ConfigRules
    imbalance_check_interval_ms: int = NEVER
    """How often leadership returns to preferred replicas."""
    imbalance_percentage: int = 0
    """How many of the partitions that prefer a broker may have another leader before it does."""
    unclean_election_interval_ms: int = NEVER
    """How often partitions without leader, of topics that allow it, get one uncleanly."""
    no_op_interval_ms: int = NEVER
    """How often a record that says nothing shows that the controller lives."""
    tokens: TokenSettings = TokenSettings()
