"""The rules between a node's roles, its listeners and the quorum, with Kafka's messages in Kafka's order.

Owns the rules of a cluster node. Most do not apply to a single node, which configures neither controller listeners
nor their addresses. Must not know the function of a role.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol

from pybroker.config.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.config.quorum import QuorumVoter

_ROLES = "process.roles"
_NAMES = "controller.listener.names"
_VOTERS = "controller.quorum.voters"
_SERVERS = "controller.quorum.bootstrap.servers"
_AUTO_JOIN = "controller.quorum.auto.join.enable"
_LISTENERS = "listeners"
_ADVERTISED = "advertised.listeners"
_INNER = "inter.broker.listener.name"
_INNER_PROTOCOL = "security.inter.broker.protocol"


class NodeSettings(Protocol):
    """The values that the rules check."""

    @property
    def given(self) -> Mapping[str, str]:
        """Return the given texts, by Kafka's names."""
        ...

    @property
    def node_id(self) -> int:
        """Return the node id."""
        ...

    @property
    def is_broker(self) -> bool:
        """Whether the node has the role broker."""
        ...

    @property
    def is_controller(self) -> bool:
        """Whether the node has the role controller."""
        ...

    @property
    def is_single(self) -> bool:
        """Whether the node is a single-node cluster."""
        ...

    @property
    def controller_listener_names(self) -> tuple[str, ...]:
        """Return the controller listener names."""
        ...

    @property
    def inter_broker_listener_name(self) -> str | None:
        """Return the inter-broker listener name, as given."""
        ...

    @property
    def inter_broker_listener(self) -> str:
        """Return the effective inter-broker listener name."""
        ...

    @property
    def security_protocols(self) -> Mapping[str, str]:
        """Return the security protocol of each listener name."""
        ...

    @property
    def quorum_voters(self) -> tuple[QuorumVoter, ...]:
        """Return the voters."""
        ...

    @property
    def quorum_bootstrap_servers(self) -> tuple[tuple[str, int], ...]:
        """Return the addresses of controllers."""
        ...

    @property
    def controller_quorum_auto_join_enable(self) -> bool:
        """Whether the controller adds itself as a voter."""
        ...

    @property
    def broker_heartbeat_interval_ms(self) -> int:
        """Return the heartbeat interval."""
        ...

    @property
    def broker_session_timeout_ms(self) -> int:
        """Return the session timeout."""
        ...


def check_required(config: NodeSettings) -> None:
    """Check that a cluster node configures the keys without a default in Kafka. Raises ConfigError."""
    if config.is_single:
        return
    for name in (_ROLES, "node.id", _NAMES):
        if name not in config.given:
            _refuse(name, f'Missing required configuration "{name}" which has no default value.')
    if not config.controller_listener_names:
        _refuse(_NAMES, f"Configuration '{_NAMES}' must not be empty. Valid values include: any non-empty value")


def check_roles(config: NodeSettings, listeners: Sequence[str], advertised: Sequence[str]) -> None:
    """Check the rules between roles, listeners and quorum. Raises ConfigError.

    `listeners` and `advertised` are the names in the keys listeners and advertised.listeners.
    """
    if config.is_single:
        _check_advertised(listeners, advertised)
        return
    _check_inter_broker(config)
    if not config.quorum_voters and not config.quorum_bootstrap_servers:
        _refuse(
            _ROLES,
            f"If using {_ROLES}, either {_SERVERS} must contain the set of bootstrap controllers or {_VOTERS} must "
            "contain a parseable set of controllers.",
        )
    _check_node_id(config)
    if config.controller_quorum_auto_join_enable and not config.is_controller:
        _refuse(_AUTO_JOIN, f"{_AUTO_JOIN} is only supported when {_ROLES} contains the 'controller' role.")
    inner = {name.upper() for name in config.controller_listener_names}
    if config.is_controller:
        _check_controller(config, set(listeners), inner)
    elif inner & set(listeners):
        _refuse(
            _NAMES,
            f"{_NAMES} must not contain a value appearing in the '{_LISTENERS}' configuration when running KRaft with "
            "just the broker role",
        )
    if config.is_broker:
        _check_broker(config, listeners, advertised, inner)


def _check_inter_broker(config: NodeSettings) -> None:
    if _INNER not in config.given:
        return
    if _INNER_PROTOCOL in config.given:
        _refuse(_INNER, f"Only one of {_INNER} and {_INNER_PROTOCOL} should be set.")
    if not config.inter_broker_listener_name:
        _refuse(_INNER, "The provided listener name is null or empty string")
    name = config.inter_broker_listener
    if name not in config.security_protocols:
        _refuse(_INNER, f"Listener with name {name} defined in {_INNER} not found in listener.security.protocol.map.")


def _check_node_id(config: NodeSettings) -> None:
    voters = {voter.node_id for voter in config.quorum_voters}
    shown = f"{_VOTERS}=Set({', '.join(str(voter) for voter in sorted(voters))})"
    if config.is_controller and voters and config.node_id not in voters:
        _refuse(
            _VOTERS,
            f"If {_ROLES} contains the 'controller' role, the node id {config.node_id} must be included in the set of "
            f"voters {shown}",
        )
    if not config.is_controller and config.node_id in voters:
        _refuse(
            _VOTERS,
            f"If {_ROLES} contains just the 'broker' role, the node id {config.node_id} must not be included in the "
            f"set of voters {shown}",
        )


def _check_controller(config: NodeSettings, listeners: set[str], inner: set[str]) -> None:
    if not config.is_broker and not listeners <= inner:
        _refuse(
            _LISTENERS,
            f"The {_LISTENERS} config must only contain KRaft controller listeners from {_NAMES} when "
            f"{_ROLES}=controller",
        )
    if not inner & listeners:
        _refuse(
            _NAMES,
            f"{_NAMES} must contain at least one value appearing in the '{_LISTENERS}' configuration when running the "
            "KRaft controller role",
        )
    if not config.is_broker and _INNER in config.given and config.inter_broker_listener in inner:
        _refuse(
            _NAMES,
            f"{_NAMES} must not contain an explicitly set {_INNER} configuration value when {_ROLES}=controller'",
        )
    if not inner <= listeners:
        _refuse(
            _NAMES,
            f"{_NAMES} must only contain values appearing in the '{_LISTENERS}' configuration when running the KRaft "
            "controller role",
        )


def _check_broker(config: NodeSettings, listeners: Sequence[str], advertised: Sequence[str], inner: set[str]) -> None:
    missing = [name for name in config.controller_listener_names if name.upper() not in config.security_protocols]
    if missing:
        _refuse(
            _NAMES,
            f"Controller listener with name {missing[0]} defined in {_NAMES} not found in "
            "listener.security.protocol.map  (an explicit security mapping for each controller listener is required if "
            "listener.security.protocol.map is non-empty, or if there are security protocols other than PLAINTEXT in "
            "use)",
        )
    for_brokers = [name for name in advertised or listeners if name not in inner]
    if not for_brokers:
        _refuse(
            _ADVERTISED,
            f"There must be at least one broker advertised listener. Perhaps all listeners appear in {_NAMES}?",
        )
    if config.inter_broker_listener not in for_brokers:
        _refuse(
            _INNER,
            f"{_INNER} must be a listener name defined in {_ADVERTISED}. The valid options based on currently "
            f"configured listeners are {','.join(for_brokers)}",
        )
    _check_advertised(listeners, for_brokers)


def _check_advertised(listeners: Sequence[str], advertised: Sequence[str]) -> None:
    if not set(advertised) <= set(listeners):
        _refuse(
            _ADVERTISED,
            f"{_ADVERTISED} listener names must be equal to or a subset of the ones defined in {_LISTENERS}. Found "
            f"{','.join(advertised)}. The valid options based on the current configuration are {','.join(listeners)}",
        )


def heartbeat_warning(config: NodeSettings) -> str | None:
    """Return Kafka's warning about a heartbeat interval that is too long for the session, None where it is not."""
    interval, session = config.broker_heartbeat_interval_ms, config.broker_session_timeout_ms
    if interval * 2 <= session:
        return None
    return (
        f"broker.heartbeat.interval.ms ({interval} ms) must be less than or equal to half of the "
        f"broker.session.timeout.ms ({session} ms). The broker.session.timeout.ms is configured on controller. The "
        "broker.heartbeat.interval.ms is configured on broker. If a broker doesn't send heartbeat request within "
        "broker.session.timeout.ms, it loses broker lease. Please increase broker.session.timeout.ms or decrease "
        "broker.heartbeat.interval.ms."
    )


def _refuse(name: str, sentence: str) -> NoReturn:
    raise RefusedError(name, None, sentence)
