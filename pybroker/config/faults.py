"""All errors in the settings of a node at once, where a start reports only the first.

Owns which errors are reported: an error that only follows from another invalid setting is omitted. The checks are
those of a start. Must not know where settings come from.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pybroker.config.broker import BrokerConfig
from pybroker.config.endpoint import parse_endpoints, parse_protocols
from pybroker.config.errors import ConfigError
from pybroker.config.key import parse_list
from pybroker.config.keys.node_keys import NodeKeys
from pybroker.config.keys.quorum_keys import QuorumKeys
from pybroker.config.quorum import parse_bootstrap_servers, parse_voters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_STRUCTURE = frozenset({*NodeKeys.keys, *QuorumKeys.keys, "listeners", "advertised.listeners"})
"""Keys that define the node's structure. While one of them is invalid, rules between keys cannot be checked."""


def find_faults(given: Mapping[str, str]) -> tuple[list[ConfigError], BrokerConfig | None]:
    """Return all errors sorted by name, and the settings, unless errors prevent building them."""
    faults = _faults(partial(_check, name, text) for name, text in given.items())
    wrong = {one.name for one in faults}
    if wrong & _STRUCTURE:
        return sorted(faults, key=_name), None
    config = BrokerConfig.__new__(BrokerConfig)
    try:
        config.take({name: text for name, text in given.items() if name not in wrong})
    except ConfigError as fault:
        return sorted([*faults, fault], key=_name), None
    for found in _faults(config.between_keys()):
        # The default replaces an invalid value, so a conflict with that default is no error.
        if found.name not in wrong and not any(name in str(found) for name in wrong):
            faults.append(found)
    return sorted({str(one): one for one in faults}.values(), key=_name), config


def _check(name: str, text: str) -> None:
    key = BrokerConfig.keys.get(name)
    if key is None:
        return
    value = key.value_of(text)
    parse: dict[str, Callable[[], object]] = {
        "controller.quorum.voters": lambda: parse_voters(value),
        "controller.quorum.bootstrap.servers": lambda: parse_bootstrap_servers(value),
        "listeners": lambda: parse_endpoints(name, value),
        "advertised.listeners": lambda: parse_endpoints(name, value),
        "listener.security.protocol.map": lambda: parse_protocols(parse_list(text)),
    }
    parse.get(name, lambda: None)()


def _faults(checks: Iterable[Callable[[], object]]) -> list[ConfigError]:
    faults = []
    for check in checks:
        try:
            check()
        except ConfigError as fault:
            faults.append(fault)
    return faults


def _name(fault: ConfigError) -> str:
    return fault.name
