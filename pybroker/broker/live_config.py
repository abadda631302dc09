"""The broker's settings while it runs: the changes that the metadata holds for it, over what it was started with.

Owns when a change is put in force: with the image that has it, before that image's topics. Must not know what a setting
does; the parts that must act subscribe to changes. One that fails keeps no other from a change: what is revoked has to
be so everywhere else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from pybroker.config.broker import BrokerConfig
from pybroker.config.client_metrics import ClientMetricsConfig
from pybroker.config.dynamic import build_dynamic, custom_keys, dynamic_fault, is_fixed, masked, value_fault
from pybroker.config.errors import RefusedError
from pybroker.config.group import group_fault
from pybroker.config.key import Kind
from pybroker.config.listening import listener_fault
from pybroker.config.topic import TopicConfig, broker_suggestion, topic_fault
from pybroker.metadata.image import CLIENT_METRICS_RESOURCE, TOPIC_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage

log = logging.getLogger("pybroker.broker")


class Reread(NamedTuple):
    """What of a properties file that was read again differs from what the broker runs with."""

    taken: tuple[str, ...]
    """Keys whose new values are in force, unless a change in the metadata stands over them."""
    left: tuple[str, ...]
    """Keys whose new values wait for the next start."""


class LiveConfig:
    """Follows the metadata image with the broker's settings. A publisher; it comes before those that use them."""

    def __init__(self, static: BrokerConfig) -> None:
        self._static = static
        self._subscribers: list[Callable[[BrokerConfig], object]] = []
        # Invariant: `current` is `_static` with exactly these two layers over it.
        self._default: Mapping[str, str] = {}
        self._own: Mapping[str, str] = {}
        self.current = static

    def subscribe(self, callback: Callable[[BrokerConfig], object]) -> None:
        """Call `callback` with the settings after every change from now on, in the order of the subscriptions."""
        self._subscribers.append(callback)

    def stop(self) -> None:
        """Call nobody any more: the subscribers end, and may know this object."""
        self._subscribers.clear()

    def publish(self, _delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Put changed settings in force."""
        default, own = image.configs.of_broker(None), image.configs.of_broker(self._static.node_id)
        if default == self._default and own == self._own:
            return
        self._warn_of_custom({**default, **own})
        self._default, self._own = default, own
        self.current, ignored = self._build(self._static)
        for fault in ignored:
            log.warning("Ignoring a stored broker configuration: %s", fault)
        changed = {**self.current.dynamic_default, **self.current.dynamic_own}
        log.info("broker settings changed: %s", masked(changed, self.current.keys))
        self._call()

    def _warn_of_custom(self, configs: Mapping[str, str]) -> None:
        """Log once that custom keys have no effect here, each with the nearest declared key."""
        before = {**self._default, **self._own}
        new = [name for name in sorted(custom_keys(self._static, configs)) if name not in before]
        if new:
            log.warning("Keeping unknown broker configurations, which have no effect: %s", ", ".join(map(_named, new)))

    def reread(self, read: BrokerConfig) -> Reread:
        """Take from a properties file that was read again what may change while a broker runs; raises ConfigError."""
        before, now = _texts(self._static), _texts(read)
        differing = [name for name in sorted({**before, **now}) if before.get(name) != now.get(name)]
        left = tuple(name for name in differing if is_fixed(self._static, name))
        taken = tuple(name for name in differing if name not in left)
        if taken:
            kept = {name: text for name, text in before.items() if name not in taken}
            static = BrokerConfig({**kept, **{name: now[name] for name in taken if name in now}})
            made, _ = self._build(static)
            fault = listener_fault(self.current, made)
            if fault is not None:
                raise RefusedError("listeners", now.get("listeners"), fault)
            self._static, self.current = static, made
            self._call()
        return Reread(taken, left)

    def _call(self) -> None:
        """Call every subscriber with the settings in force; raises nothing: a failure of one is logged."""
        for callback in self._subscribers:
            try:
                callback(self.current)
            except Exception:
                log.critical("Failed to apply changed broker settings to %s", _name_of(callback), exc_info=True)

    def _build(self, static: BrokerConfig) -> tuple[BrokerConfig, tuple[str, ...]]:
        """Return given settings with the stored changes over them, and what is wrong with those that are left out."""
        made, ignored = build_dynamic(static, self._default, self._own)
        fault = listener_fault(self.current, made)
        if fault is not None and "listeners" in self._own:
            # They were changed in a run whose listeners, by the properties file, were others.
            own = {name: text for name, text in self._own.items() if name != "listeners"}
            made, ignored = build_dynamic(static, self._default, own)
            ignored = (*ignored, str(RefusedError("listeners", self._own["listeners"], fault)))
        return made, ignored

    def broker_fault(self, configs: Mapping[str, str], /, *, broker: int | None) -> str | None:
        """Return what is wrong with all changes of one broker, or of the default of all (None); None for nothing."""
        if broker not in (None, self._static.node_id):
            return value_fault(self._static, configs)
        return dynamic_fault(self._static, self.current, configs, is_own=broker is not None)

    def topic_fault(self, configs: Mapping[str, str], /) -> str | None:
        """Return what is wrong with a topic's own configurations, None for nothing."""
        return topic_fault(configs, self.current)

    def min_insync_replicas(self, configs: Mapping[str, str], /) -> int:
        """Return `min.insync.replicas` of a topic with these configurations of its own."""
        return TopicConfig.stored(configs, self.current)[0].min_insync_replicas

    def elects_uncleanly(self, configs: Mapping[str, str], /) -> bool:
        """Return `unclean.leader.election.enable` of a topic with these configurations of its own."""
        return TopicConfig.stored(configs, self.current)[0].unclean_leader_election_enable

    def group_fault(self, configs: Mapping[str, str], /) -> str | None:
        """Return what is wrong with a group's own configurations, None for nothing."""
        return group_fault(configs, self.current)

    def list_inherited(self, resource_type: int, name: str, /) -> tuple[str, ...] | None:
        """Return the items of a list that a resource does not set itself, None for what is no list."""
        if resource_type == CLIENT_METRICS_RESOURCE:
            own = ClientMetricsConfig.keys.get(name)
            return () if own is not None and own.kind is Kind.LIST else None
        settings = TopicConfig({}, self.current) if resource_type == TOPIC_RESOURCE else self._static
        key = settings.keys.get(name)
        if key is None or key.kind is not Kind.LIST:
            return None
        return tuple(getattr(settings, key.attribute) or ())


def _named(name: str) -> str:
    near = broker_suggestion(name)
    return f"{name} (is {near} meant?)" if near else name


def _name_of(callback: Callable[[BrokerConfig], object]) -> str:
    return getattr(callback, "__qualname__", None) or repr(callback)


def _texts(config: BrokerConfig) -> dict[str, str]:
    """Return every text that a broker was started with and that means something to it."""
    return {**config.given, **config.of_listeners, **config.of_mechanisms}
