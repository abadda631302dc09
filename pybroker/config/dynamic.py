"""Dynamic configs of a running broker, over its static ones (KIP-226).

Owns which broker configs may change at runtime, per broker or cluster-wide, and the resulting configuration. Must
not know where changes are stored, or what they affect.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.config.connections import MAX, RATE, listener_limit
from pybroker.config.errors import ConfigError
from pybroker.config.key import Kind
from pybroker.config.keys.security_keys import LISTENER_ONLY, SecurityKeys
from pybroker.config.listening import listener_fault
from pybroker.config.topic import TopicConfig

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from pybroker.config.broker import BrokerConfig
    from pybroker.config.key import Key

PER_BROKER = frozenset(
    {"cordoned.log.dirs", "listeners", "listener.security.protocol.map", "sasl.enabled.mechanisms", *SecurityKeys.keys}
)
"""Configs that Kafka changes per broker only, since each broker has its own listeners."""

AT_START = frozenset({"principal.builder.class"})
"""Configs that Kafka changes at runtime, but that this broker reads only at its start."""

_THREADS = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
_OF_LISTENERS = frozenset({"sasl.enabled.mechanisms", MAX, RATE, *SecurityKeys.keys}) - AT_START
# A key of one listener, and of one of its SASL mechanisms: listener.name.internal.scram-sha-256.sasl.jaas.config.
_FOR_LISTENER = re.compile(r"listener\.name\.[^.]+\.(?P<key>.+)")
_FOR_MECHANISM = re.compile(r"[^.]+\.(?P<key>sasl\..+)")


class DynamicConfig(NamedTuple):
    """The resulting settings, and the stored changes that could not be applied."""

    config: BrokerConfig
    ignored: tuple[str, ...]


def build_dynamic(static: BrokerConfig, default: Mapping[str, str], own: Mapping[str, str]) -> DynamicConfig:
    """Return the static settings, overridden by the cluster-wide changes, overridden by the broker's own changes.

    A stored change that this version does not support does not prevent a start: it is skipped and reported. A custom
    key is neither validated nor reported; it is stored in `custom_default` or `custom_own`.
    """
    ignored: list[str] = []
    kept: list[dict[str, str]] = []
    for layer, is_own in ((_declared(static, default), False), (_declared(static, own), True)):
        faults = {name: _fault(static, name, text, is_own=is_own) for name, text in layer.items()}
        ignored += [fault for fault in faults.values() if fault]
        kept.append({name: text for name, text in layer.items() if not faults[name]})
    conflict = _conflict(static, kept)
    if conflict is not None:
        ignored.append(conflict)
        kept = _without_conflict(static, kept)
    made = _overlaid(static, kept)
    made.__dict__.update(custom_default=custom_keys(static, default), custom_own=custom_keys(static, own))
    return DynamicConfig(made, tuple(ignored))


def custom_keys(static: BrokerConfig, configs: Mapping[str, str]) -> dict[str, str]:
    """Return the configs with undeclared keys. Like Kafka, this broker keeps them for plug-ins."""
    return {name: text for name, text in configs.items() if key_of(name, static.keys) is None}


def _declared(static: BrokerConfig, configs: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in configs.items() if key_of(name, static.keys) is not None}


def key_of(name: str, keys: Mapping[str, Key[Any]]) -> Key[Any] | None:
    """Return the declaration of a name, which may be a listener's; None for a key unknown to Kafka."""
    found = _FOR_LISTENER.fullmatch(name)
    if found is None:
        return keys.get(name)
    name = found["key"]
    of_mechanism = _FOR_MECHANISM.fullmatch(name)
    return keys.get(of_mechanism["key"] if name not in keys and of_mechanism is not None else name)


def is_fixed(static: BrokerConfig, name: str) -> bool:
    """Return whether a static setting can only change with a restart."""
    key = key_of(name, static.keys)
    if key is None or not key.dynamic or name in LISTENER_ONLY or name in AT_START:
        return True
    return name != key.name and key.name not in _OF_LISTENERS


def masked(configs: Mapping[str, str], keys: Mapping[str, Key[Any]]) -> dict[str, str]:
    """Return the values for log messages, without secrets. A custom key counts as a secret, as in Kafka."""
    return {name: _masked(key_of(name, keys), text) for name, text in configs.items()}


def _masked(key: Key[Any] | None, text: str) -> str:
    return "[hidden]" if key is None or key.kind is Kind.PASSWORD else text


def _overlaid(static: BrokerConfig, layers: Sequence[Mapping[str, str]]) -> BrokerConfig:
    default, own = layers
    # A key of one listener has no value for the whole broker.
    made = static.overlaid({name: text for name, text in {**default, **own}.items() if name in static.keys})
    made.__dict__.update(dynamic_default=default, dynamic_own=own)
    return made


def _conflict(static: BrokerConfig, layers: Sequence[Mapping[str, str]]) -> str | None:
    """Return the error of valid values that conflict with each other, None without a conflict."""
    try:
        _overlaid(static, layers).check_between_keys()
    except ConfigError as error:
        return str(error)
    except (ValueError, OverflowError) as error:
        # The message of this error may contain a part of a secret.
        names = ", ".join(sorted({**layers[0], **layers[1]}))
        return f"cannot apply the changes of {names} ({type(error).__name__})"
    return None


def _without_conflict(static: BrokerConfig, layers: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the layers without the changes that conflict with others or with the static settings.

    Removes changes in the order of their names until the rest has no conflict. Then restores each removed change that
    causes no conflict. Each change is tested at most twice.
    """

    def without(names: Container[str]) -> list[dict[str, str]]:
        return [{name: text for name, text in layer.items() if name not in names} for layer in layers]

    left_out: list[str] = []
    for name in sorted({**layers[0], **layers[1]}):
        left_out.append(name)
        if _conflict(static, without(left_out)) is None:
            break
    for name in left_out[-2::-1]:
        others = [other for other in left_out if other != name]
        if _conflict(static, without(others)) is None:
            left_out = others
    return without(left_out)


def dynamic_fault(
    static: BrokerConfig,
    current: BrokerConfig,
    configs: Mapping[str, str],
    *,
    is_own: bool,
) -> str | None:
    """Return the error of all changes of one broker (`is_own`) or of the cluster-wide ones, None where they are valid.

    `current` are the current settings, with the changes that these would replace.
    """
    for words in _refused(static, configs, is_own=is_own):
        return words
    changed = _declared(static, configs)
    default, own = (current.dynamic_default, changed) if is_own else (changed, current.dynamic_own)
    made = build_dynamic(static, default, own).config
    conflict = _conflict(static, [default, own])
    if conflict is not None:
        return conflict
    try:
        TopicConfig({}, made)
    except ConfigError as error:
        return str(error)
    return listener_fault(current, made) or _thread_fault(current, made)


def value_fault(static: BrokerConfig, configs: Mapping[str, str]) -> str | None:
    """Return the error of changes for another broker, None where they are valid. Each is validated separately.

    Only that broker can check the rules between them and its static settings.
    """
    return next(_refused(static, configs, is_own=True), None)


def _refused(static: BrokerConfig, configs: Mapping[str, str], *, is_own: bool) -> Iterator[str]:
    fixed = [name for name in configs if name in static.keys and not static.keys[name].dynamic]
    if fixed:
        yield f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
    unprefixed = [name for name in configs if name in LISTENER_ONLY]
    if unprefixed:
        yield (
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"[{', '.join(unprefixed)}]"
        )
    single = [name for name in configs if _is_per_broker(name)]
    if single and not is_own:
        yield (
            f"Cannot update these configs at default cluster level, broker id must be specified: [{', '.join(single)}]"
        )
    for name, text in _declared(static, configs).items():
        fault = _fault(static, name, text, is_own=is_own)
        if fault is not None:
            yield fault


def _is_per_broker(name: str) -> bool:
    return name in PER_BROKER or _FOR_LISTENER.fullmatch(name) is not None


def _fault(static: BrokerConfig, name: str, text: str, *, is_own: bool) -> str | None:
    key = key_of(name, static.keys)
    assert key is not None, f"{name} is a custom key"
    shown = f"{name}={_masked(key, text)}"
    if not key.dynamic or name in LISTENER_ONLY or (_is_per_broker(name) and not is_own):
        return f"{shown}: it cannot be changed here while the broker runs"
    if name in AT_START:
        return f"{shown}: it is read only at a start, set it in the broker's properties file"
    if name != key.name and key.name not in _OF_LISTENERS:
        return f"{shown}: this version has no {key.name} of a single listener"
    try:
        key.value_of(text)
        if name != key.name and key.name in (MAX, RATE):
            listener_limit(name, text)
    except ConfigError as error:
        return str(ConfigError(name, text, error.expected))
    except (ValueError, OverflowError) as error:
        return f"{shown}: the value cannot be parsed ({type(error).__name__})"
    return None


def _thread_fault(current: BrokerConfig, made: BrokerConfig) -> str | None:
    """Check a number of threads by Kafka's rule: at most doubled, at least half (rounded down).

    Returns the error or None.
    """
    before, after = current.log_cleaner_threads, made.log_cleaner_threads
    if after < before // 2:
        return f"Log cleaner threads cannot be reduced to less than half the current value {before}"
    if after > before * 2:
        return f"Log cleaner threads cannot be increased to more than double the current value {before}"
    for name in _THREADS:
        attribute = current.keys[name].attribute
        before, after = getattr(current, attribute), getattr(made, attribute)
        reported = f"Dynamic thread count update validation failed for {name}={after}"
        if after < before // 2:
            return f"{reported}, value should be at least half the current value {before}"
        if after > before * 2:
            return f"{reported}, value should not be greater than double the current value {before}"
    return None
