"""What the cluster machine is configured with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class BrokerConfigsRule(Protocol):
    """Judges the changed configurations of a broker."""

    def __call__(self, configs: Mapping[str, str], /, *, is_own: bool) -> str | None:
        """Return what is wrong with those of one broker (`is_own`) or of the default of all, None for nothing."""


class ListRule(Protocol):
    """Knows which configurations are lists."""

    def __call__(self, resource_type: int, name: str, /) -> tuple[str, ...] | None:
        """Return the items that a list has where its resource does not set it, None for what is no list."""


def nothing_wrong(_configs: Mapping[str, str], /, *, is_own: bool) -> str | None:  # noqa: ARG001 - the rule's shape
    """Judge nothing."""
    return None


def any_group_configs(_configs: Mapping[str, str], /) -> str | None:
    """Judge nothing."""
    return None


def no_list(_resource_type: int, _name: str, /) -> tuple[str, ...] | None:
    """Know no list."""
    return None


class ClusterSettings(NamedTuple):
    """Complete; the defaults are in `pybroker.config`."""

    num_partitions: int
    """What -1 partitions of a new topic means."""
    replication_factor: int
    """What a replication factor of -1 means."""
    validate_topic_configs: Callable[[Mapping[str, str]], str | None]
    """What is wrong with a topic's own configurations, None when nothing is; depends on nothing but its argument."""
    session_timeout_ms: int
    """A broker that is silent for longer is fenced."""
    validate_broker_configs: BrokerConfigsRule = nothing_wrong
    """What is wrong with the changed configurations of a broker; depends on its arguments and its broker's settings."""
    list_inherited: ListRule = no_list
    """Which configurations can be appended to, and what to."""
    validate_group_configs: Callable[[Mapping[str, str]], str | None] = any_group_configs
    """What is wrong with a group's own configurations; depends on its argument and the broker's settings."""
