"""What a handler may use: the services of the node, and where its request came from.

Owns nothing; it is the list of what handlers depend on. Must not contain behaviour of an API.
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
    from pybroker.security.authorizer import Judge
    from pybroker.security.delegation_tokens import DelegationTokens
    from pybroker.security.mutation_quotas import MutationQuotas
    from pybroker.security.quotas import RequestTime
    from pybroker.security.sasl.server import SaslServer
    from pybroker.storage.moves import LogMoves
    from pybroker.storage.partitions import Partitions
    from pybroker.storage.retention import Retention
    from pybroker.telemetry.service import Telemetry


class Origin(Protocol):
    """The request's envelope, as the data plane read it."""

    @property
    def connection(self) -> int:
        """Number of the connection."""

    @property
    def api_key(self) -> int:
        """Key of the API."""

    @property
    def api_version(self) -> int:
        """Version the client chose."""

    @property
    def client_id(self) -> str | None:
        """What the client calls itself."""

    @property
    def listener(self) -> str:
        """Name of the listener that accepted the connection."""

    @property
    def local_host(self) -> str:
        """Address that the client dialled."""

    @property
    def local_port(self) -> int:
        """Port that the client dialled."""

    @property
    def peer_host(self) -> str:
        """The client's address."""

    @property
    def peer_port(self) -> int:
        """The client's port; 0 where it is not known."""

    @property
    def software(self) -> tuple[str, str] | None:
        """What the client says that it is (KIP-511), name and version; None where it does not say."""

    @property
    def principal(self) -> tuple[str, str] | None:
        """Who the client is, as kind and name; None while it has not said."""


class Services(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The parts of a node that handlers call on listeners of either role."""

    config: BrokerConfig
    config_rules: ConfigRules
    """By what this node was started with."""
    cluster_id: str
    image: Callable[[], MetadataImage]
    controller: SwitchingChannel
    publisher: PartitionPublisher | NoPartitions
    advertised: Mapping[str, tuple[str, int]]
    """By listener; a listener not in it advertises what the client dialled."""
    slices: Slices
    mutations: MutationQuotas
    """Partitions that clients may have made and deleted, on listeners of either role."""
    tokens: DelegationTokens | None
    """None without the secret of delegation tokens."""
    sasl: SaslServer | None
    """None where no listener of the role authenticates clients by SASL."""
    authorizer: Judge | None
    """None where clients may do everything."""


class BrokerServices(Services, frozen=True, kw_only=True, eq=False):
    """The parts that handlers call on listeners of brokers."""

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
    """None without receivers of clients' metrics."""


class ControllerServices(Services, frozen=True, kw_only=True, eq=False):
    """The parts that handlers call on listeners of controllers."""

    voter: Controller
    failure_detector: FailureDetector


class Contexts:
    """Makes the context of every request of one role, of the services and the image that are in force when it comes."""

    def __init__(
        self,
        kind: type[RequestContext],
        services: Services,
        time_of: Callable[[Origin], RequestTime | None] = lambda _: None,
    ) -> None:
        """`time_of` returns what a request's time is counted by, for quotas."""
        self._kind = kind
        self._services = services
        self._time_of = time_of

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take the broker's changed settings; they hold for every request from now on."""
        self._services = msgspec.structs.replace(self._services, config=config)

    @property
    def services(self) -> Services:
        """What is in force now."""
        return self._services

    def build(self, origin: Origin) -> RequestContext:
        """Return the context of a request."""
        said = origin.principal
        principal = ANONYMOUS if said is None else Principal(*said)
        services = self._services
        time = self._time_of(origin)
        return self._kind(services, origin, services.image(), origin.api_version, principal, time=time)

    def build_own(self, origin: Origin) -> RequestContext:
        """Return the context of a request of this node to itself: it may do everything, and no quota counts it."""
        services = msgspec.structs.replace(self._services, authorizer=None)
        return self._kind(services, origin, services.image(), origin.api_version)


class RequestContext(msgspec.Struct, eq=False, gc=False):
    """One request's surroundings. `image` is read once, so a handler sees one state of the cluster.

    What a request's head says is read when it is asked for: most requests need none of it.
    """

    role: ClassVar[ListenerRole]
    """Role of the listener that accepted the connection: `BROKER` or `CONTROLLER`."""

    services: Services
    origin: Origin
    image: MetadataImage
    version: int
    """Version of the request and of its response."""
    principal: Principal = ANONYMOUS
    """Who the request is from, as the connection has proved it; nobody in particular before, and on PLAINTEXT."""
    forwarded_by_token: bool | None = None
    """Of a request that a broker forwarded, whether its client authenticated by a delegation token; None of others."""
    ends_connection: bool = False
    """Whether the connection is closed once the response is sent."""
    time: RequestTime | None = None
    """The time that it has taken so far; None where no quota counts that."""
    wait_ms: int = 0
    """How long its client is to wait by an answer that another node has made: its bytes are sent as they are."""

    @property
    def listener(self) -> str:
        """Name of the listener that accepted the connection; answers name brokers by their endpoints of that name."""
        return self.origin.listener

    @property
    def by_token(self) -> bool:
        """Whether the client authenticated by a delegation token."""
        if self.forwarded_by_token is not None:
            return self.forwarded_by_token
        return self.services.sasl is not None and self.services.sasl.is_by_token(self.origin.connection)

    def end_after(self, response: Any) -> Reply:
        """Answer after `connection.failed.authentication.delay.ms`, and close the connection (KIP-306)."""
        self.ends_connection = True
        reply = Reply()
        delay_s = self.services.config.connection_failed_authentication_delay_ms / 1000
        asyncio.get_running_loop().call_later(delay_s, reply, response, None)
        return reply

    @property
    def authorizer(self) -> Judge | None:
        """Who decides what the client may do, by the newest entries; None where everything is allowed."""
        judge = self.services.authorizer
        if judge is not None:
            judge.follow(self.services.image().acls)
        return judge

    @property
    def api_key(self) -> int:
        """Key of the API that is asked."""
        return self.origin.api_key

    @property
    def client_id(self) -> str | None:
        """What the client calls itself."""
        return self.origin.client_id

    @property
    def client_host(self) -> str:
        """The client's address."""
        return self.origin.peer_host


class BrokerContext(RequestContext, eq=False, gc=False):
    """Surroundings of a request to a listener of brokers."""

    role = ListenerRole.BROKER
    services: BrokerServices


class ControllerContext(RequestContext, eq=False, gc=False):
    """Surroundings of a request to a listener of controllers."""

    role = ListenerRole.CONTROLLER
    services: ControllerServices
