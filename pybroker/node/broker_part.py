"""The broker of a node: its listeners, partitions and coordinators, and its membership of the cluster.

Owns the order in which its parts are built; each says there how it ends. Must not know how the metadata is agreed on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from pybroker.broker.broker_channel import build_broker_channels
from pybroker.broker.heartbeat import Heartbeats
from pybroker.broker.lifecycle import LifecycleSettings
from pybroker.broker.moved_clients import MovedClients
from pybroker.broker.own_registration import OwnRegistration
from pybroker.broker.recent_deaths import RecentDeaths
from pybroker.broker.registration import Endpoints, Registration, Unreported
from pybroker.broker.renewal import Renewal
from pybroker.broker.shut_down import Stage
from pybroker.broker.suspects import Suspects
from pybroker.broker.transaction_verification import TransactionVerification
from pybroker.controller.cluster.elections import leads_anything
from pybroker.controller.errors import ControllerError
from pybroker.coordinator.group.settings import build_settings
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC
from pybroker.handlers.api_versions import encoded_answers
from pybroker.handlers.context import BrokerContext, BrokerServices, Contexts
from pybroker.handlers.encoded_topics import EncodedTopics
from pybroker.handlers.own_requests import OwnRequests
from pybroker.handlers.served import asked_by_brokers
from pybroker.handlers.telemetry_client import TELEMETRY_KEYS
from pybroker.machine.slices import Slices
from pybroker.net import descriptors
from pybroker.net.api_versions import ApiVersionsPublisher
from pybroker.net.closing import close_connections, finish_requests
from pybroker.net.connection_limits import ConnectionQuotas
from pybroker.net.data_plane_settings import build_data_plane_settings
from pybroker.net.dispatch import Dispatch
from pybroker.net.events import EventTable, log_line
from pybroker.net.listeners import BrokerListeners, OpenListener, advertised
from pybroker.net.native import (
    ConnectionClosed,
    DataPlane,
    Exhausted,
    InterceptedRequest,
    LogDirectoryFailed,
    LogLine,
    PeerCertificate,
    QuotaAsked,
    ReplicaCaughtUp,
    ReplicaDeletedRecords,
    SegmentRolled,
    UnresolvedRequest,
    verify_transactions,
)
from pybroker.net.network_threads import serve_by_threads
from pybroker.net.pipeline import Pipeline
from pybroker.net.quotas import Quotas, QuotaWindow
from pybroker.net.rights import Rights, Verdict
from pybroker.net.tls import TlsListeners
from pybroker.node.coordinators import build_coordinators
from pybroker.node.serving import build_apis
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.write_txn_markers import WriteTxnMarkersResponse
from pybroker.replica.deletions import Deletions
from pybroker.replica.in_sync import InSyncReplicas
from pybroker.replica.lag_checks import LagChecks
from pybroker.replica.missing_records import find_missing_records
from pybroker.replica.publisher import PartitionPublisher
from pybroker.replica.sources import build_replication_settings
from pybroker.serving import (
    Users,
    build_authorizer,
    build_sasl_server,
    build_telemetry,
    build_tokens,
    build_unresolved,
    limits_of,
)
from pybroker.storage.partitions import Partitions
from pybroker.storage.upkeep import Upkeep
from pybroker.storage.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.broker.failures import Failures
    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.service import Controller
    from pybroker.handlers.context import RequestContext
    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.publishers import Publisher
    from pybroker.net.native import ControlRequest
    from pybroker.node.controller_access import ControllerAccess, MetadataSource
    from pybroker.node.foundation import Foundation
    from pybroker.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
    from pybroker.security.delegation_tokens import DelegationTokens
    from pybroker.security.mutation_quotas import MutationQuotas
    from pybroker.security.sasl.server import SaslServer
    from pybroker.storage.log_directory import LogDirectory

log = logging.getLogger("pybroker")


class BrokerPart:
    """One run of a node's broker: its parts, in the order in which they are built."""

    listeners: tuple[OpenListener, ...]
    source: MetadataSource
    access: ControllerAccess

    def __init__(self, foundation: Foundation, intercepted: Callable[[ControlRequest, RequestContext], None]) -> None:
        """`intercepted` decides about the requests of the APIs that `data_plane.intercept` names."""
        self._foundation = foundation
        self._intercepted = intercepted
        self.authorizer = build_authorizer(foundation.config)
        self.config = foundation.config
        self.live = foundation.live
        self.telemetry = build_telemetry(foundation.config, foundation.clock.steady_ms)
        if self.telemetry is not None:
            foundation.shut_down.add(Stage.WORKERS, "receivers of clients' metrics", self.telemetry.close)
        self.recent_deaths: RecentDeaths | None = None
        self.suspects: Suspects | None = None
        self.tokens: DelegationTokens | None = None
        self.sasl: SaslServer | None = None
        # None in a single node: its controller lives as long as it does.
        self._heartbeats: Heartbeats | None = None
        # None before the broker is registered.
        self._renewal: Renewal | None = None

    @property
    def cluster_id(self) -> str:
        """The cluster that the node's directories belong to."""
        return self._foundation.cluster_id

    @property
    def log_directories(self) -> tuple[LogDirectory, ...]:
        """The log directories, those that have failed included."""
        return self._foundation.directories.logs

    @property
    def not_ready(self) -> str | None:
        """Why this broker does not serve its clients; None where it does."""
        if not hasattr(self, "pipeline"):
            return "the broker is starting: its logs are being opened"
        registered = self.source.image.cluster.brokers.get(self.config.node_id)
        if registered is None:
            return "the broker is not registered"
        return "the broker is fenced" if registered.fenced else None

    @property
    def mutations(self) -> MutationQuotas:
        """How many partitions clients may have made and deleted, whichever listener they come by."""
        return self._foundation.mutations

    @property
    def failures(self) -> Failures:
        """What the broker does not survive."""
        return self._foundation.failures

    def listen(self) -> None:
        """Open the listeners, on which nobody is answered yet; raises ListenError."""
        config, end = self.config, self._foundation.shut_down.add
        data_plane = self.data_plane = DataPlane(build_data_plane_settings(config, self._foundation.shares))
        events = self.events = EventTable()
        events.on(LogLine, log_line)
        events.on(LogDirectoryFailed, lambda event: self.failures.lose_directory(event.directory, event.error))
        end(Stage.ACCEPTING, data_plane, data_plane.stop_accepting)
        end(Stage.CONNECTIONS, data_plane, lambda: close_connections(data_plane))
        self.rights = Rights(data_plane, self.authorizer)
        window = QuotaWindow(config.quota_window_num, config.quota_window_size_seconds)
        self.quotas = Quotas(data_plane, window)
        events.on(QuotaAsked, self.quotas.answer)
        tls = config.tls_of_listeners()
        self.tls = TlsListeners(
            {one.endpoint.name: tls[one.endpoint.name] for one in config.broker_endpoints if one.is_encrypted},
            self._foundation.principal_builder,
        )
        self._open_listeners = BrokerListeners(data_plane, config, self.tls)
        self.listeners = self._open_listeners.all
        self.live.subscribe(partial(serve_by_threads, data_plane))
        self.connection_quotas = ConnectionQuotas(data_plane, config, self._foundation.shares)
        end(Stage.ACCEPTING, self.connection_quotas, self.connection_quotas.stop)
        self.live.subscribe(self.connection_quotas.reconfigure)
        events.on(PeerCertificate, self.tls.name_peer)
        self.tls.start(data_plane)
        end(Stage.ACCEPTING, self.tls, self.tls.stop)
        self.live.subscribe(lambda changed: self.tls.reconfigure(changed.tls_of_listeners()))
        self.live.subscribe(self._listen_anew)

    def build(self, source: MetadataSource, access: ControllerAccess) -> list[Publisher]:
        """Build what follows the metadata, and return it in the order in which it has to follow."""
        end, failures, live = self._foundation.shut_down.add, self.failures, self.live
        self.source, self.access, self.channel = source, access, access.channel
        directories = self._foundation.directories
        unreported = Unreported(self.config.log_dir_failure_timeout_ms, failures.end)
        registration = Registration(self.config.node_id, directories, self.channel.active, ControllerError, unreported)
        self.registration = registration
        end(Stage.REPORTS, registration, registration.stop)
        if not self.config.is_single:
            self._heartbeats = self._build_heartbeats()
        publisher = self._build_replicas()
        brokers = self.brokers = build_broker_channels(
            self.config, lambda: source.image, self._foundation.outbound.brokers
        )
        end(Stage.PARKED_REQUESTS, brokers, brokers.close)
        self.verification = TransactionVerification(
            brokers.verification, self._coordinator_of, timeout_ms=lambda: live.current.request_timeout_ms
        )
        publisher.hold()
        self.in_sync = self._build_in_sync()
        self.deletions = self._build_deletions()
        access.follow(lambda: publisher.offset_in_force, publisher.published)
        failures.on_lost_directory(publisher.directory_failed)
        failures.on_survived(registration.report_failed_directories)
        live.subscribe(self._size_workers)
        live.subscribe(publisher.reconfigure)
        live.subscribe(lambda config: self.groups.reconfigure(build_settings(config)))
        live.subscribe(self._verify_transactions)
        self._verify_transactions(live.current)
        self._api_versions = ApiVersionsPublisher(self.data_plane)
        # Rules come first: nobody finds a topic that is newer than they are.
        own = OwnRegistration(self.config.node_id)
        rules: list[Publisher] = [self.rights, self.quotas, self.connection_quotas, own]
        if self.telemetry is not None:
            rules.append(self.telemetry)
            forget = self.telemetry.forget
            self.events.on(ConnectionClosed, lambda event: forget(event.connection))
        if not self.config.is_single:
            self.recent_deaths = RecentDeaths(self._foundation.clock.steady_ms)
            rules.append(self.recent_deaths)
        return [*rules, publisher, self._api_versions]

    def suspect(self, controller: Controller) -> Suspects:
        """Have the voters suspected that close their connections, until the metadata knows; a publisher."""
        suspects = self.suspects = Suspects(lambda: controller.image, controller.look_at_voters)
        controller.on_reach(lambda voter, reached: suspects.acquit(voter) if reached else suspects.note(voter))
        return suspects

    async def register(self) -> None:
        """Register this broker. Then its partitions are opened in the background."""
        endpoints = self._endpoints()
        if self._heartbeats is None:
            await self.registration.register(endpoints)
        else:
            await self._heartbeats.register(endpoints)
        self.publisher.release(self.registration.epoch)
        self._replicate(self.live.current)
        renewal = self._renewal = Renewal(self._register_anew, ControllerError)
        self._foundation.shut_down.add(Stage.REPORTS, renewal, renewal.stop)
        if endpoints != self._endpoints():
            renewal.want()
        self.live.subscribe(self._replicate)
        # The stores of the listener between brokers are those that this broker connects with.
        self.tls.on_renewed(lambda: self._replicate(self.live.current))

    def _endpoints(self) -> Endpoints:
        """Return where clients find the broker."""
        return Endpoints(
            {one.name: one.reachable for one in self.listeners},
            {one.name: one.protocol_number for one in self.listeners},
            self.config.broker_rack,
        )

    def _listen_anew(self, config: BrokerConfig) -> None:
        """Open and close listeners as the settings say, and have the controller know."""
        if self._open_listeners.reconfigure(config):
            self.listeners = self._open_listeners.all
            if self._renewal is not None:
                self._renewal.want()

    async def _register_anew(self) -> None:
        """Register this run of the broker with the listeners that it has now: its epoch is another then."""
        endpoints = self._endpoints()
        await self.registration.register(endpoints, fenced=self._heartbeats is not None)
        names = ", ".join(sorted(endpoints.listeners))
        log.info("registered anew, with epoch %d and the listeners %s", self.registration.epoch, names)
        self._replicate(self.live.current)

    async def serve(self) -> None:
        """Answer requests, once everything is open that the metadata has here; keep the logs in order."""
        source, publisher, partitions = self.source, self.publisher, self.partitions
        end = self._foundation.shut_down.add
        apis = build_apis(self._foundation, self.access, publisher, offers_telemetry=self.telemetry is not None)
        self.quotas.begin(asked_by_brokers())
        # Its registration is in the image then, and with it all that was committed before.
        await publisher.published(max(source.image.offset, self.registration.epoch))
        unserved = TELEMETRY_KEYS if self.telemetry is None else ()
        self._api_versions.begin(lambda image: encoded_answers(image, unserved), source.image)
        partitions.set_aside_strays()
        upkeep = self._build_upkeep()
        await upkeep.resume_moves()
        wall_ms, config, live = self._foundation.clock.wall_ms, self.config, self.live
        self.tokens = build_tokens(config, lambda: source.image, wall_ms)
        users = Users(lambda: source.image.scram, self.tokens, self._foundation.principal_builder)
        self.sasl = build_sasl_server(live, self.data_plane, users, wall_ms, lambda changed: changed.broker_endpoints)
        if self.sasl is not None:
            end(Stage.WORKERS, self.sasl, self.sasl.close)
            forget = self.sasl.forget
            self.events.on(ConnectionClosed, lambda event: forget(event.connection))
        contexts = Contexts(BrokerContext, self._build_services(), self.quotas.time_of)
        self.live.subscribe(contexts.reconfigure)
        self.brokers.serve_here(OwnRequests(apis, contexts).answer)
        dispatch = Dispatch(self._foundation.traced(apis))
        # The last log directory may have failed while the partitions were opened.
        self._foundation.failures.check()
        unresolved = build_unresolved(self.data_plane, self._decide, self.transactions, self.verification)
        end(Stage.EVENTS, unresolved, unresolved.stop)
        self.events.on(UnresolvedRequest, unresolved.handle)
        intercepted, build = self._intercepted, contexts.build
        self.events.on(InterceptedRequest, lambda event: intercepted(event.request, build(event.request)))
        pipeline = self.pipeline = Pipeline(self.data_plane, dispatch, contexts, self.events, limits_of(config))
        end(Stage.REQUESTS, pipeline, lambda: finish_requests(pipeline))
        end(Stage.EVENTS, pipeline, pipeline.stop)
        pipeline.start()
        descriptors.say(self._foundation.shares, self.config, len(partitions.all()))
        await upkeep.begin()
        self._lag_checks.begin()
        if self._heartbeats is not None:
            await self.registration.report_lost(find_missing_records(partitions.all(), publisher.image_in_force))
            self._heartbeats.opened()
            await self._heartbeats.unfenced()

    async def leave(self) -> None:
        """Hand over what this broker leads, where others can lead it, before it stops (controlled shutdown)."""
        if self._heartbeats is not None and self.config.controlled_shutdown_enable:
            clients = MovedClients(self._leads_anything, self._refused_as_no_leader, time.monotonic)
            if await self._heartbeats.leave():
                await clients.gone()

    async def _decide(self, request: UnresolvedRequest) -> Verdict:
        """Return what becomes of a request: topics of the image are in the table once the image is published."""
        await self.publisher.published(self.source.image.offset)
        return self.rights.verdict(request, self.source.image)

    def _leads_anything(self) -> bool:
        return leads_anything(self.publisher.image_in_force, self.config.node_id)

    def _refused_as_no_leader(self) -> int:
        counted = self.data_plane.counters().apis
        return sum(api.errors.get(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0) for api in counted)

    def _build_heartbeats(self) -> Heartbeats:
        config = self.config
        settings = LifecycleSettings(config.broker_heartbeat_interval_ms, config.initial_broker_registration_timeout_ms)
        heartbeats = Heartbeats(
            config.node_id, self.registration, self.channel.active, ControllerError, settings, _steady_ms
        )
        self._foundation.shut_down.add(Stage.REPORTS, heartbeats, heartbeats.stop)
        return heartbeats

    def _build_in_sync(self) -> InSyncReplicas:
        publisher, partitions, live, channel = self.publisher, self.partitions, self.live, self.channel
        node_id, registration = self.config.node_id, self.registration
        in_sync = InSyncReplicas(
            node_id,
            self.data_plane,
            image=lambda: publisher.image_in_force,
            find=partitions.get,
            alter_partitions=lambda changes: channel.active().alter_partitions(node_id, registration.epoch, changes),
            broker_epoch=lambda: registration.epoch,
        )
        self.events.on(ReplicaCaughtUp, in_sync.caught_up)
        checks = self._lag_checks = LagChecks(in_sync, partitions.all, lambda: live.current)
        end = self._foundation.shut_down.add
        end(Stage.ROLES, checks, checks.stop)
        end(Stage.ROLES, in_sync, in_sync.stop)
        return in_sync

    def _build_deletions(self) -> Deletions:
        publisher, partitions = self.publisher, self.partitions
        deletions = Deletions(
            self.data_plane,
            image=lambda: publisher.image_in_force,
            find=partitions.get,
            is_lost=partitions.is_lost,
        )
        self.events.on(ReplicaDeletedRecords, deletions.deleted)
        return deletions

    def _replicate(self, config: BrokerConfig) -> None:
        """Put the settings of replication in force."""
        security = self._foundation.outbound.brokers
        self.data_plane.set_replication(build_replication_settings(config, self.registration.epoch, security))

    def _follow(self, image: MetadataImage) -> None:
        """Take note of an image that is in force in the data plane."""
        if self._heartbeats is not None and self.registration.follow(image):
            self._replicate(self.live.current)
        self.brokers.follow(image)
        self.groups.follow(image)
        self.transactions.follow(image)
        self.in_sync.published(image)
        self.deletions.published()
        self._lag_checks.published(image)

    def drop(self) -> None:
        """Let go of the parts, which have ended."""
        for part in (self.transactions, self.groups, self.markers, self.verification):
            vars(part).clear()
        vars(self).clear()

    def _build_services(self) -> BrokerServices:
        return BrokerServices(
            config=self.live.current,
            config_rules=self.live,
            cluster_id=self.cluster_id,
            image=lambda: self.source.image,
            controller=self.channel,
            publisher=self.publisher,
            advertised=advertised(self.listeners),
            slices=Slices(),
            mutations=self.mutations,
            tokens=self.tokens,
            sasl=self.sasl,
            authorizer=self.authorizer,
            groups=self.groups,
            transactions=self.transactions,
            partitions=self.partitions,
            moves=self.upkeep.moves,
            producer_ids=self.producer_ids,
            retention=self.upkeep.retention,
            deletions=self.deletions,
            topics=EncodedTopics(),
            markers=self.markers,
            verification=self.verification,
            recent_deaths=self.recent_deaths,
            suspects=self.suspects,
            telemetry=self.telemetry,
        )

    def _build_replicas(self) -> PartitionPublisher:
        config, directories = self.config, self._foundation.directories
        end, clock = self._foundation.shut_down.add, self._foundation.clock
        threads = self.live.current.num_recovery_threads_per_data_dir
        workers = self._workers = Workers(threads * len(directories.logs))
        end(Stage.WORKERS, workers, workers.shutdown)
        partitions = self.partitions = Partitions(directories, clock.wall_ms, self.failures.report_directory)
        end(Stage.LOGS, "closing of the logs, which the next start recovers", self._close_logs)
        partitions.scan()
        for path, count in partitions.to_recover.items():
            log.info("recovering %d partitions in %s, as the last run did not stop cleanly", count, path)
        self.commits, self.groups, self.producer_ids, self.markers, self.transactions = build_coordinators(
            self._foundation, self.data_plane, self.events, partitions, self.registration, self._send_markers
        )
        publisher = self.publisher = PartitionPublisher(
            config, partitions, self.data_plane, workers, self._follow, self.registration.report_placed
        )
        end(Stage.ROLES, publisher, publisher.stop)
        return publisher

    def _size_workers(self, config: BrokerConfig) -> None:
        """Have as many threads open logs as the settings say, from the next logs on."""
        self._workers.resize(config.num_recovery_threads_per_data_dir * len(self._foundation.directories.logs))

    def _verify_transactions(self, config: BrokerConfig) -> None:
        verify_transactions(self.data_plane, config.transaction_partition_verification_enable)

    def _coordinator_of(self, transactional_id: str) -> int | None:
        """Return the broker that coordinates a transactional id, None where nobody does now."""
        image = self.source.image
        topic = image.topics.by_name.get(STATE_TOPIC)
        partition = None if topic is None else topic.partitions[self.transactions.partition_for(transactional_id)]
        return None if partition is None or partition.leader < 0 else partition.leader

    async def _send_markers(self, broker: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        timeout_ms = self.config.request_timeout_ms
        return await self.brokers.markers.send(broker, request, WriteTxnMarkersResponse, timeout_ms=timeout_ms)

    async def _close_logs(self) -> None:
        threads, epoch = self.live.current.num_recovery_threads_per_data_dir, self.registration.epoch
        clean = self._foundation.shut_down.is_clean
        await asyncio.to_thread(self.partitions.close, threads, epoch, clean=clean)

    def _build_upkeep(self) -> Upkeep:
        live, failures = self.live, self.failures
        upkeep = self.upkeep = Upkeep(
            self.partitions,
            self._foundation.directories,
            self._workers,
            self._foundation.clock,
            config_of=lambda: live.current,
            settings_of=self.publisher.settings_of,
            log_files=self._foundation.shares.log_files,
            directory_failed=failures.report_directory,
            moved=self.publisher.moved,
        )
        self.events.on(Exhausted, lambda event: upkeep.open_files.step_exhausted(event.error))
        self.events.on(SegmentRolled, lambda event: upkeep.flush_rolled(event.topic, event.index))
        end = self._foundation.shut_down.add
        end(Stage.UPKEEP, upkeep, upkeep.end)
        end(Stage.FLUSHES, "flushing of rolled logs", upkeep.flushed)
        failures.on_lost_directory(lambda _path: upkeep.moves.give_up_failed())
        live.subscribe(upkeep.reconfigure)
        return upkeep


def _steady_ms() -> int:
    return int(time.monotonic() * 1000)
