"""The settings of a running broker: dynamic configurations of the metadata, over the settings of its start.

Owns when a change is applied: with its image, before that image's topics. Must not know the effect of a setting; the
affected parts subscribe to changes. If one part fails, the others still receive the change: a revoked permission must
be revoked everywhere else.
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
    """The differences between a properties file that was read again and the running settings."""

    taken: tuple[str, ...]
    """Keys whose new values are applied, unless a dynamic configuration overrides them."""
    left: tuple[str, ...]
    """Keys whose new values need a restart."""


class LiveConfig:
    """Applies dynamic configurations of the metadata image.

    A publisher, called before the publishers that use the settings.
    """

    def __init__(self, static: BrokerConfig) -> None:
        self._static = static
        self._subscribers: list[Callable[[BrokerConfig], object]] = []
        # Invariant: `current` is `_static` overridden by exactly these two layers.
        self._default: Mapping[str, str] = {}
        self._own: Mapping[str, str] = {}
        self.current = static

    def subscribe(self, callback: Callable[[BrokerConfig], object]) -> None:
        """Register `callback` for changed settings. Callbacks are called in the order of registration."""
        self._subscribers.append(callback)

    def stop(self) -> None:
        """Remove all callbacks, which would otherwise keep ended parts referenced."""
        self._subscribers.clear()

    def publish(self, _delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Apply changed settings."""
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
        """Log once that unknown keys have no effect, each with the most similar declared key."""
        before = {**self._default, **self._own}
        new = [name for name in sorted(custom_keys(self._static, configs)) if name not in before]
        if new:
            log.warning("Keeping unknown broker configurations, which have no effect: %s", ", ".join(map(_named, new)))

    def reread(self, read: BrokerConfig) -> Reread:
        """Apply the settings of a properties file that may change while a broker runs. Raises ConfigError."""
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
        """Call every subscriber with the current settings. A failure is logged and not raised."""
        for callback in self._subscribers:
            try:
                callback(self.current)
            except Exception:
                log.critical("Failed to apply changed broker settings to %s", _name_of(callback), exc_info=True)

    def _build(self, static: BrokerConfig) -> tuple[BrokerConfig, tuple[str, ...]]:
        """Return `static` overridden by the stored configurations, and messages on the ignored ones."""
        made, ignored = build_dynamic(static, self._default, self._own)
        fault = listener_fault(self.current, made)
        if fault is not None and "listeners" in self._own:
            # The stored listeners were set in a run with other listeners in the properties file.
            own = {name: text for name, text in self._own.items() if name != "listeners"}
            made, ignored = build_dynamic(static, self._default, own)
            ignored = (*ignored, str(RefusedError("listeners", self._own["listeners"], fault)))
        return made, ignored

    def broker_fault(self, configs: Mapping[str, str], /, *, broker: int | None) -> str | None:
        """Return why dynamic configurations of a broker, or the cluster-wide ones (None), are invalid, else None."""
        if broker not in (None, self._static.node_id):
            return value_fault(self._static, configs)
        return dynamic_fault(self._static, self.current, configs, is_own=broker is not None)

    def topic_fault(self, configs: Mapping[str, str], /) -> str | None:
        """Return why a topic's own configurations are invalid, else None."""
        return topic_fault(configs, self.current)

    def min_insync_replicas(self, configs: Mapping[str, str], /) -> int:
        """Return `min.insync.replicas` of a topic with these own configurations."""
        return TopicConfig.stored(configs, self.current)[0].min_insync_replicas

    def elects_uncleanly(self, configs: Mapping[str, str], /) -> bool:
        """Return `unclean.leader.election.enable` of a topic with these own configurations."""
        return TopicConfig.stored(configs, self.current)[0].unclean_leader_election_enable

    def group_fault(self, configs: Mapping[str, str], /) -> str | None:
        """Return why a group's own configurations are invalid, else None."""
        return group_fault(configs, self.current)

    def list_inherited(self, resource_type: int, name: str, /) -> tuple[str, ...] | None:
        """Return the inherited items of a list configuration, None if the configuration is not a list."""
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
    """Return all settings of the properties file that the broker uses."""
    return {**config.given, **config.of_listeners, **config.of_mechanisms}
