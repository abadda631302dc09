"""How requests are served: the services that handlers find, and the pipeline that brings requests to them.

Owns what of a broker's parts a request can meet. Must not decide in which order parts are built: that is the node's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from pybroker.broker.transaction_verification import Producer, Wish
from pybroker.config.errors import ConfigError
from pybroker.coordinator.transaction.events import ProducerIdentity
from pybroker.handlers.context import Contexts, Services
from pybroker.handlers.encoded_topics import EncodedTopics
from pybroker.handlers.served import served_apis
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.machine.slices import Slices
from pybroker.net.dispatch import Dispatch
from pybroker.net.events import EventTable, log_line
from pybroker.net.listeners import advertised
from pybroker.net.native import ConnectionClosed, LogDirectoryFailed, LogLine, PeerCertificate
from pybroker.net.pipeline import Limits, Pipeline
from pybroker.net.rights import Verdict
from pybroker.net.unresolved import UnresolvedRequests
from pybroker.protocol.listener_role import ListenerRole
from pybroker.replica.no_partitions import NoPartitions
from pybroker.security import authorizer, principal_builder
from pybroker.telemetry.receivers import Receivers, build_receivers
from pybroker.telemetry.service import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from pybroker.broker.broker_channel import BrokerChannels
    from pybroker.broker.failures import Failures
    from pybroker.broker.live_config import LiveConfig
    from pybroker.broker.producer_ids import ProducerIds
    from pybroker.broker.recent_deaths import RecentDeaths
    from pybroker.broker.registration import Registration
    from pybroker.broker.suspects import Suspects
    from pybroker.broker.transaction_verification import TransactionVerification
    from pybroker.config.broker import BrokerConfig
    from pybroker.config.endpoint import Listener
    from pybroker.config.sasl import ListenerSasl
    from pybroker.controller.death_watch import DeathWatch
    from pybroker.controller.local_channel import LocalChannel
    from pybroker.controller.service import Controller
    from pybroker.controller.switching_channel import SwitchingChannel
    from pybroker.coordinator.group.service import GroupCoordinator
    from pybroker.coordinator.runtime.commits import CommitWaits
    from pybroker.coordinator.runtime.markers import Markers
    from pybroker.coordinator.transaction.service import TransactionCoordinator
    from pybroker.machine.reply import Reply
    from pybroker.metadata.image import MetadataImage, ScramImage
    from pybroker.net.dispatch import Api
    from pybroker.net.listeners import OpenListener
    from pybroker.net.native import DataPlane, UnresolvedRequest
    from pybroker.net.quotas import Quotas
    from pybroker.net.rights import Rights
    from pybroker.net.tls import TlsListeners
    from pybroker.net.verification import Answers, Asked
    from pybroker.replica.deletions import Deletions
    from pybroker.replica.in_sync import InSyncReplicas
    from pybroker.replica.publisher import PartitionPublisher
    from pybroker.security.authorizer import Judge
    from pybroker.security.delegation_tokens import DelegationTokens
    from pybroker.security.mutation_quotas import MutationQuotas
    from pybroker.security.principal_builder import Proof
    from pybroker.security.principals import Principal
    from pybroker.security.sasl.server import SaslServer
    from pybroker.storage.partitions import Partitions
    from pybroker.storage.upkeep import Upkeep


_NONCE_BYTES = 18
"""Random bytes of the server in an exchange of SCRAM."""


class MetadataSource(Protocol):
    """Where the broker has the metadata from."""

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""


class Parts(Protocol):
    """The parts of a broker that requests and events meet."""

    config: BrokerConfig
    data_plane: DataPlane
    listeners: tuple[OpenListener, ...]
    tls: TlsListeners
    live: LiveConfig
    channel: LocalChannel | SwitchingChannel
    registration: Registration
    brokers: BrokerChannels
    commits: CommitWaits
    markers: Markers
    verification: TransactionVerification
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    producer_ids: ProducerIds
    partitions: Partitions
    publisher: PartitionPublisher
    in_sync: InSyncReplicas
    deletions: Deletions
    recent_deaths: RecentDeaths | None
    suspects: Suspects | None
    tokens: DelegationTokens | None
    sasl: SaslServer | None
    authorizer: Judge | None
    rights: Rights
    quotas: Quotas
    telemetry: Telemetry | None
    upkeep: Upkeep

    @property
    def source(self) -> MetadataSource:
        """Where the broker has the metadata from."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""

    @property
    def failures(self) -> Failures:
        """What the broker does not survive."""

    @property
    def mutations(self) -> MutationQuotas:
        """How many partitions clients may have made and deleted."""


def build_authorizer(config: BrokerConfig) -> Judge | None:
    """Return who decides what clients may do. Raises ConfigError for a class that cannot be loaded."""
    name = config.authorizer_class_name
    try:
        return authorizer.build(name, config.super_users, config.given, if_none=config.allow_everyone_if_no_acl_found)
    except Exception as error:
        words = f"a class that can be loaded and called with the node's properties: {error!r}"
        raise ConfigError("authorizer.class.name", name, words) from error


def build_principal_builder(config: BrokerConfig) -> Callable[[Proof], Principal] | None:
    """Return who makes principals of what clients prove, None for Kafka's default. Raises ConfigError, as above."""
    name = config.principal_builder_class
    try:
        return principal_builder.load(name, config.given)
    except Exception as error:
        words = f"a class that can be loaded and called with the node's properties: {error!r}"
        raise ConfigError("principal.builder.class", name, words) from error


def build_telemetry(config: BrokerConfig, now_ms: Callable[[], int]) -> Telemetry | None:
    """Return what takes clients' metrics; None where nothing would receive them. Raises ConfigError for a receiver that
    cannot be loaded.
    """
    receivers, last_values = build_receivers(config.telemetry_receivers, config.given, now_ms)
    if not receivers:
        return None
    return Telemetry(Receivers(receivers), last_values, max_bytes=config.telemetry_max_bytes, now_ms=now_ms)


def build_tokens(
    config: BrokerConfig, image: Callable[[], MetadataImage], wall_ms: Callable[[], int]
) -> DelegationTokens | None:
    """Return what checks delegation tokens; None for a node without `delegation.token.secret.key`."""
    secret = config.delegation_token_secret_key
    if secret is None:
        return None
    from pybroker.security.delegation_tokens import DelegationTokens

    return DelegationTokens(secret, lambda: image().delegation_tokens, wall_ms)


class Users(msgspec.Struct, frozen=True):
    """Who can log in: what the metadata has of users and of delegation tokens."""

    scram: Callable[[], ScramImage]
    tokens: DelegationTokens | None
    builder: Callable[[Proof], Principal] | None
    """Who makes principals of them; None: they are users by their names."""


def build_sasl_server(
    live: LiveConfig,
    data_plane: DataPlane,
    users: Users,
    wall_ms: Callable[[], int],
    listeners_of: Callable[[BrokerConfig], Iterable[Listener]],
) -> SaslServer | None:
    """Return what exchanges of SASL on these listeners are held with; None where none of them asks for it."""

    def offered(config: BrokerConfig) -> dict[str, ListenerSasl]:
        names = {one.endpoint.name for one in listeners_of(config)}
        return {name: one for name, one in config.sasl_of_listeners().items() if name in names}

    found = offered(live.current)
    if not found:
        return None
    # A node whose clients say not who they are starts without what would ask them.
    import secrets

    from pybroker.security.sasl.server import SaslServer

    sasl = SaslServer(
        found,
        scram=users.scram,
        tokens=users.tokens,
        builder=users.builder,
        prove=data_plane.authenticate,
        nonce=lambda: secrets.token_urlsafe(_NONCE_BYTES),
        wall_ms=wall_ms,
    )
    live.subscribe(lambda config: sasl.reconfigure(offered(config)))
    return sasl


def build_services(parts: Parts) -> Services:
    """Return what handlers find in their context."""
    source = parts.source
    return Services(
        config=parts.live.current,
        config_rules=parts.live,
        cluster_id=parts.cluster_id,
        image=lambda: source.image,
        controller=parts.channel,
        groups=parts.groups,
        transactions=parts.transactions,
        partitions=parts.partitions,
        moves=parts.upkeep.moves,
        publisher=parts.publisher,
        producer_ids=parts.producer_ids,
        retention=parts.upkeep.retention,
        deletions=parts.deletions,
        slices=Slices(),
        topics=EncodedTopics(),
        advertised=advertised(parts.listeners),
        recent_deaths=parts.recent_deaths,
        suspects=parts.suspects,
        sasl=parts.sasl,
        tokens=parts.tokens,
        authorizer=parts.authorizer,
        mutations=parts.mutations,
        markers=parts.markers,
        verification=parts.verification,
        brokers=parts.brokers,
        telemetry=parts.telemetry,
        time_of=parts.quotas.time_of,
    )


def limits_of(config: BrokerConfig) -> Limits:
    """Return how much a pipeline of this node works on."""
    return Limits(config.queued_max_requests, config.socket_request_max_elements)


def build_unresolved(parts: Parts) -> UnresolvedRequests:
    """Return what decides about requests that the data plane cannot serve by itself."""
    source, publisher, transactions = parts.source, parts.publisher, parts.transactions

    async def decide(request: UnresolvedRequest) -> Verdict:
        # Topics that the image has are in the table once it is published; for all others the table's word holds.
        await publisher.published(source.image.offset)
        return parts.rights.verdict(request, source.image)

    async def ask_coordinator(asked: Asked) -> Answers:
        transactional_id, producer_id, producer_epoch, version, partitions = asked
        producer = Producer(transactional_id, producer_id, producer_epoch)
        return await parts.verification.of_produce(producer, version, partitions)

    def ask_here(asked: Asked) -> Reply | None:
        transactional_id, producer_id, producer_epoch, version, partitions = asked
        identity, adds = ProducerIdentity(producer_id, producer_epoch), Wish.of_produce(version) is Wish.ADD
        return transactions.verify(transactional_id, identity, partitions, adds=adds)

    return UnresolvedRequests(parts.data_plane, decide, ask_here, ask_coordinator)


class ControllerParts(Protocol):
    """The parts of a controller that other nodes' requests meet."""

    controller: Controller
    data_plane: DataPlane
    listeners: tuple[OpenListener, ...]
    local: LocalChannel
    death_watch: DeathWatch
    tls: TlsListeners
    sasl: SaslServer | None

    @property
    def config(self) -> BrokerConfig:
        """The node's settings."""

    @property
    def live(self) -> LiveConfig:
        """The node's settings in force."""

    @property
    def mutations(self) -> MutationQuotas:
        """How many partitions clients may have made and deleted."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""

    @property
    def failures(self) -> Failures:
        """What the node does not survive."""


def build_controller_pipeline(
    parts: ControllerParts, traced: Callable[[Mapping[int, Api]], Mapping[int, Api]]
) -> Pipeline:
    """Return the pipeline of the listeners of controllers, not started; `traced` makes APIs that leave spans."""
    controller, watch, sasl = parts.controller, parts.death_watch, parts.sasl
    absent: Any = _Absent()
    names = frozenset(listener.name for listener in parts.listeners)
    services = Services(
        config=parts.live.current,
        config_rules=parts.live,
        cluster_id=parts.cluster_id,
        image=lambda: controller.image,
        controller=parts.local,
        own_controller=parts.local,
        groups=absent,
        transactions=absent,
        partitions=absent,
        moves=absent,
        publisher=NoPartitions(),
        producer_ids=absent,
        retention=absent,
        deletions=absent,
        slices=Slices(),
        topics=EncodedTopics(),
        advertised=advertised(parts.listeners),
        death_watch=watch,
        voter=controller,
        controller_listeners=names,
        tokens=build_tokens(parts.config, lambda: controller.image, SYSTEM_CLOCK.wall_ms),
        sasl=sasl,
        authorizer=build_authorizer(parts.config),
        mutations=parts.mutations,
    )
    contexts = Contexts(services)
    parts.live.subscribe(contexts.reconfigure)

    events = EventTable()
    events.on(LogLine, log_line)
    events.on(LogDirectoryFailed, lambda event: parts.failures.lose_directory(event.directory, event.error))
    events.on(PeerCertificate, parts.tls.name_peer)
    events.on(ConnectionClosed, lambda event: watch.connection_closed(event.connection))
    if sasl is not None:
        events.on(ConnectionClosed, lambda event: sasl.forget(event.connection))
    dispatch = Dispatch({}, traced(served_apis(ListenerRole.CONTROLLER)), names)
    return Pipeline(parts.data_plane, dispatch, contexts, events, limits_of(parts.config))


class _Absent:
    """Stands for a part of a broker that the listeners of controllers have not."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"an API of controllers asks for {name}, which a broker has: its listeners are wrong")
