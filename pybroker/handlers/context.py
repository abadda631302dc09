"""The context of a handler: the services of the node, and the origin of its request.

Owns no state: it lists the dependencies of handlers. Must not contain behaviour of an API.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec

from pybroker.machine.reply import Reply
from pybroker.protocol.listener_role import ListenerRole
from pybroker.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.broker.failed_brokers import FailedBrokers
    from pybroker.broker.producer_ids import ProducerIds
    from pybroker.broker.transaction_verification import TransactionVerification
    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.cluster.settings import ConfigRules
    from pybroker.controller.failure_detector import FailureDetector
    from pybroker.controller.service import Controller
    from pybroker.controller.switching_channel import SwitchingChannel
    from pybroker.coordinator.group.service import GroupCoordinator
    from pybroker.coordinator.runtime.markers import Markers
    from pybroker.coordinator.transaction.service import TransactionCoordinator
    from pybroker.handlers.encoded_topics import EncodedTopics
    from pybroker.machine.slices import Slices
    from pybroker.metadata.image import MetadataImage
    from pybroker.replica.deletions import Deletions
    from pybroker.replica.no_partitions import NoPartitions
    from pybroker.replica.publisher import PartitionPublisher
    from pybroker.security.authorizer import AuthorizationRules
    from pybroker.security.delegation_tokens import DelegationTokens
    from pybroker.security.mutation_quotas import MutationQuotas
    from pybroker.security.quotas import RequestTime
    from pybroker.security.sasl.server import SaslServer
    from pybroker.storage.moves import LogMoves
    from pybroker.storage.partitions import Partitions
    from pybroker.storage.retention import Retention
    from pybroker.telemetry.service import Telemetry


class Origin(Protocol):
    """The request's header and connection, from the data plane."""

    @property
    def connection(self) -> int:
        """The number of the connection."""

    @property
    def api_key(self) -> int:
        """Key of the API."""

    @property
    def api_version(self) -> int:
        """The version of the request."""

    @property
    def client_id(self) -> str | None:
        """The client id."""

    @property
    def listener(self) -> str:
        """Name of the listener that accepted the connection."""

    @property
    def local_host(self) -> str:
        """The local address of the connection."""

    @property
    def local_port(self) -> int:
        """The local port of the connection."""

    @property
    def peer_host(self) -> str:
        """The client's address."""

    @property
    def peer_port(self) -> int:
        """The client's port; 0 if unknown."""

    @property
    def software(self) -> tuple[str, str] | None:
        """The name and version of the client software (KIP-511); None if unknown."""

    @property
    def principal(self) -> tuple[str, str] | None:
        """The principal's type and name; None before authentication."""


class Services(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The parts of a node that handlers call on listeners of either role."""

    config: BrokerConfig
    config_rules: ConfigRules
    """Validation by this node's settings."""
    cluster_id: str
    image: Callable[[], MetadataImage]
    controller: SwitchingChannel
    publisher: PartitionPublisher | NoPartitions
    advertised: Mapping[str, tuple[str, int]]
    """By listener. Clients of other listeners receive the address to which they connected."""
    slices: Slices
    mutations: MutationQuotas
    """The controller mutation quotas of clients, on listeners of either role."""
    tokens: DelegationTokens | None
    """None without `delegation.token.secret.key`."""
    sasl: SaslServer | None
    """None if no listener of the role uses SASL."""
    authorizer: AuthorizationRules | None
    """None if every operation is allowed."""


class BrokerServices(Services, frozen=True, kw_only=True, eq=False):
    """The parts that handlers call on broker listeners."""

    groups: GroupCoordinator
    transactions: TransactionCoordinator
    partitions: Partitions
    moves: LogMoves
    producer_ids: ProducerIds
    retention: Retention
    deletions: Deletions
    topics: EncodedTopics
    markers: Markers
    verification: TransactionVerification
    failed_brokers: FailedBrokers
    telemetry: Telemetry | None
    """None without receivers of client telemetry."""


class ControllerServices(Services, frozen=True, kw_only=True, eq=False):
    """The parts that handlers call on controller listeners."""

    voter: Controller
    failure_detector: FailureDetector


class Contexts:
    """Makes the contexts of requests of one role, with the current services and image."""

    def __init__(
        self,
        kind: type[RequestContext],
        services: Services,
        time_of: Callable[[Origin], RequestTime | None] = lambda _: None,
    ) -> None:
        """`time_of` returns the timer of a request for quotas, None if its time is not measured."""
        self._kind = kind
        self._services = services
        self._time_of = time_of

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply changed settings to all later requests."""
        self._services = msgspec.structs.replace(self._services, config=config)

    @property
    def services(self) -> Services:
        """The current services."""
        return self._services

    def build(self, origin: Origin) -> RequestContext:
        """Return the context of a request."""
        reported = origin.principal
        principal = ANONYMOUS if reported is None else Principal(*reported)
        services = self._services
        time = self._time_of(origin)
        return self._kind(services, origin, services.image(), origin.api_version, principal, time=time)

    def build_own(self, origin: Origin) -> RequestContext:
        """Return the context of a request of this node to itself: everything is allowed, and no quota applies."""
        services = msgspec.structs.replace(self._services, authorizer=None)
        return self._kind(services, origin, services.image(), origin.api_version)


class RequestContext(msgspec.Struct, eq=False, gc=False):
    """The context of one request. `image` is read once, so a handler sees one state of the cluster.

    Header fields are read on access, since most requests need none of them.
    """

    role: ClassVar[ListenerRole]
    """Role of the listener that accepted the connection: `BROKER` or `CONTROLLER`."""

    services: Services
    origin: Origin
    image: MetadataImage
    version: int
    """Version of the request and of its response."""
    principal: Principal = ANONYMOUS
    """The authenticated principal; `ANONYMOUS` before authentication, and on PLAINTEXT."""
    forwarded_by_token: bool | None = None
    """Whether the client of a forwarded request authenticated by a delegation token; None if not forwarded."""
    ends_connection: bool = False
    """Whether the connection is closed once the response is sent."""
    time: RequestTime | None = None
    """The measured time of the request; None if no quota applies."""
    wait_ms: int = 0
    """Throttle time in an encoded response, such as that of another node, whose bytes are sent unchanged."""

    @property
    def listener(self) -> str:
        """Name of the listener that accepted the connection.

        Responses contain brokers' endpoints of the same listener.
        """
        return self.origin.listener

    @property
    def by_token(self) -> bool:
        """Whether the client authenticated by a delegation token."""
        if self.forwarded_by_token is not None:
            return self.forwarded_by_token
        return self.services.sasl is not None and self.services.sasl.is_by_token(self.origin.connection)

    def end_after(self, response: Any) -> Reply:
        """Send `response` after `connection.failed.authentication.delay.ms`, then close the connection (KIP-306)."""
        self.ends_connection = True
        reply = Reply()
        delay_s = self.services.config.connection_failed_authentication_delay_ms / 1000
        asyncio.get_running_loop().call_later(delay_s, reply, response, None)
        return reply

    @property
    def authorizer(self) -> AuthorizationRules | None:
        """The authorizer with the newest access control entries; None if every operation is allowed."""
        rules = self.services.authorizer
        if rules is not None:
            rules.follow(self.services.image().acls)
        return rules

    @property
    def api_key(self) -> int:
        """The API key of the request."""
        return self.origin.api_key

    @property
    def client_id(self) -> str | None:
        """The client id."""
        return self.origin.client_id

    @property
    def client_host(self) -> str:
        """The client's address."""
        return self.origin.peer_host


class BrokerContext(RequestContext, eq=False, gc=False):
    """The context of a request on a broker listener."""

    role = ListenerRole.BROKER
    services: BrokerServices


class ControllerContext(RequestContext, eq=False, gc=False):
    """The context of a request on a controller listener."""

    role = ListenerRole.CONTROLLER
    services: ControllerServices
