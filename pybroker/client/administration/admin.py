"""Admin for blocking code: every call of `AsyncAdmin`, on an event loop of its own.

`with Admin("127.0.0.1:9092") as admin: admin.create_topics([NewTopic("orders", 3)])`. Not for use inside a
running event loop: use `AsyncAdmin` there.
"""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
import weakref
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pybroker.client.administration.acl_admin import Acl, AclFilter
from pybroker.client.administration.async_admin import AsyncAdmin, wait_for_leaders
from pybroker.client.administration.groups import GroupDescription, GroupListing, OffsetAndMetadata, Offsets
from pybroker.client.administration.log_dirs import LogDirDescription, Replica, ReplicaBatches
from pybroker.client.administration.quorum import FeatureUpdate, QuorumDescription, RaftEndpoint
from pybroker.client.administration.quota_admin import NameFilter, QuotaEntity
from pybroker.client.administration.streams_groups import StreamsGroupDescription
from pybroker.client.administration.token_admin import AT_ONCE, LONGEST, Token
from pybroker.client.administration.topics import (
    TOPIC,
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    CreatedTopic,
    FeatureDescription,
    ListedOffset,
    MorePartitions,
    NewTopic,
    Reassignment,
    TopicDescription,
    TopicPartition,
)
from pybroker.client.administration.transactions import (
    NOTHING,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from pybroker.client.administration.user_admin import ScramPassword
from pybroker.client.arguments import check_arguments
from pybroker.client.closing import Closing
from pybroker.client.errors import BrokerError, ClientError

Result = TypeVar("Result")


def _end_loop(runner: asyncio.Runner, _connections: AsyncAdmin, process: int) -> None:
    """Cancel the tasks of connections that are open, and close their loop.

    A process that was forked shares the loop's selector with its parent, and leaves the loop as it is.
    """
    if os.getpid() != process:
        return
    if asyncio._get_running_loop() is None:
        runner.close()
        return
    # The garbage collector may run inside of another event loop, and a thread runs one loop at a time.
    thread = threading.Thread(target=runner.close)
    thread.start()
    thread.join()


@check_arguments
class Admin(Closing):
    """A blocking `AsyncAdmin`. Thread-safe: a call waits for the call of another thread; `close` ends that call."""

    _runner: asyncio.Runner | None = None
    """None before the first call and after `close`."""

    def __init__(self, bootstrap_servers: str | None = None, properties: Mapping[str, object] | None = None) -> None:
        """As `AsyncAdmin`."""
        self._lock = threading.RLock()
        """Owned by the thread whose call runs the loop."""
        self._async = AsyncAdmin(bootstrap_servers, properties)

    def close(self) -> None:
        """Close every connection. A concurrent call of another thread raises ClosedError."""
        runner = self._runner
        if runner is None:
            return
        if not self._lock.acquire(blocking=False):
            asyncio.run_coroutine_threadsafe(self._async.close(), runner.get_loop())
            self._lock.acquire()
        try:
            if self._runner is not None:
                self._run(self._async.close())
                self._end()
                self._runner = None
        finally:
            self._lock.release()

    def __del__(self) -> None:
        """Warn of an Admin that was not closed; `_end_loop` closes its connections."""
        if self._runner is None:
            return
        text = f"unclosed {self!r}: call close(), or use it in a with block"
        warnings.warn(text, ResourceWarning, stacklevel=2, source=self)

    def _run(self, call: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end. Raises ClientError inside a running event loop, and what `call` raises."""
        if asyncio._get_running_loop() is not None:
            call.close()
            raise ClientError("Admin blocks, and an event loop is running in this thread: use AsyncAdmin, and await it")
        try:
            with self._lock:
                if self._runner is None:
                    self._runner = asyncio.Runner()
                    # The finalizer runs when this object is collected, or before the interpreter destroys its modules.
                    # Until then it references the loop and the connections, which own the tasks.
                    self._end = weakref.finalize(self, _end_loop, self._runner, self._async, os.getpid())
                return self._runner.run(call)
        finally:
            call.close()  # KeyboardInterrupt arrived before the coroutine began.

    def create_topics(
        self, topics: Sequence[NewTopic | str], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[CreatedTopic]:
        """As `AsyncAdmin.create_topics`."""
        return self._run(self._async.create_topics(topics, validate_only=validate_only, timeout_ms=timeout_ms))

    def delete_topics(self, names: Sequence[str], *, timeout_ms: int | None = None) -> None:
        """As `AsyncAdmin.delete_topics`."""
        self._run(self._async.delete_topics(names, timeout_ms=timeout_ms))

    def list_topics(self, *, internal: bool = False) -> list[str]:
        """As `AsyncAdmin.list_topics`."""
        return self._run(self._async.list_topics(internal=internal))

    def describe_topics(
        self, names: Sequence[str], *, partitions_per_response: int | None = None
    ) -> list[TopicDescription]:
        """As `AsyncAdmin.describe_topics`."""
        return self._run(self._async.describe_topics(names, partitions_per_response=partitions_per_response))

    def describe_cluster(self, *, include_fenced: bool = False) -> ClusterDescription:
        """As `AsyncAdmin.describe_cluster`."""
        return self._run(self._async.describe_cluster(include_fenced=include_fenced))

    def describe_quorum(self) -> QuorumDescription:
        """As `AsyncAdmin.describe_quorum`."""
        return self._run(self._async.describe_quorum())

    def add_raft_voter(
        self,
        node_id: int,
        directory_id: bytes,
        endpoints: Sequence[RaftEndpoint],
        *,
        cluster_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """As `AsyncAdmin.add_raft_voter`."""
        adding = self._async.add_raft_voter(
            node_id, directory_id, endpoints, cluster_id=cluster_id, timeout_ms=timeout_ms
        )
        self._run(adding)

    def remove_raft_voter(self, node_id: int, directory_id: bytes, *, cluster_id: str | None = None) -> None:
        """As `AsyncAdmin.remove_raft_voter`."""
        self._run(self._async.remove_raft_voter(node_id, directory_id, cluster_id=cluster_id))

    def unregister_broker(self, node_id: int) -> None:
        """As `AsyncAdmin.unregister_broker`."""
        self._run(self._async.unregister_broker(node_id))

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        longer_than_ms: int = NOTHING,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """As `AsyncAdmin.list_transactions`."""
        listing = self._async.list_transactions(
            states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
        )
        return self._run(listing)

    def describe_transactions(self, transactional_ids: Sequence[str]) -> dict[str, TransactionDescription]:
        """As `AsyncAdmin.describe_transactions`."""
        return self._run(self._async.describe_transactions(transactional_ids))

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker: int | None = None
    ) -> dict[TopicPartition, list[ProducerState]]:
        """As `AsyncAdmin.describe_producers`."""
        return self._run(self._async.describe_producers(partitions, broker=broker))

    def abort_transaction(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> None:
        """As `AsyncAdmin.abort_transaction`."""
        self._run(self._async.abort_transaction(partition, producer_id, producer_epoch, coordinator_epoch))

    def fence_producers(self, transactional_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """As `AsyncAdmin.fence_producers`."""
        return self._run(self._async.fence_producers(transactional_ids))

    def force_terminate_transaction(self, transactional_id: str) -> None:
        """As `AsyncAdmin.force_terminate_transaction`."""
        self._run(self._async.force_terminate_transaction(transactional_id))

    def describe_acls(self, wanted: AclFilter | None = None) -> list[Acl]:
        """As `AsyncAdmin.describe_acls`."""
        return self._run(self._async.describe_acls(wanted))

    def create_acls(self, acls: Sequence[Acl]) -> None:
        """As `AsyncAdmin.create_acls`."""
        self._run(self._async.create_acls(acls))

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """As `AsyncAdmin.delete_acls`."""
        return self._run(self._async.delete_acls(filters))

    def describe_client_quotas(
        self, components: Mapping[str, NameFilter] | None = None, *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """As `AsyncAdmin.describe_client_quotas`."""
        return self._run(self._async.describe_client_quotas(components, strict=strict))

    def alter_client_quotas(
        self, entity: Mapping[str, str | None], changes: Mapping[str, float | None], *, validate_only: bool = False
    ) -> None:
        """As `AsyncAdmin.alter_client_quotas`."""
        self._run(self._async.alter_client_quotas(entity, changes, validate_only=validate_only))

    def describe_features(self) -> dict[str, FeatureDescription]:
        """As `AsyncAdmin.describe_features`."""
        return self._run(self._async.describe_features())

    def describe_api_versions(self, broker: int) -> dict[int, tuple[int, int]]:
        """As `AsyncAdmin.describe_api_versions`."""
        return self._run(self._async.describe_api_versions(broker))

    def update_features(
        self, updates: Mapping[str, FeatureUpdate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> dict[str, BrokerError | None]:
        """As `AsyncAdmin.update_features`."""
        return self._run(self._async.update_features(updates, validate_only=validate_only, timeout_ms=timeout_ms))

    def create_token(
        self, *, renewers: Sequence[str] = (), max_lifetime_ms: int = LONGEST, owner: str | None = None
    ) -> Token:
        """As `AsyncAdmin.create_token`."""
        return self._run(self._async.create_token(renewers=renewers, max_lifetime_ms=max_lifetime_ms, owner=owner))

    def renew_token(self, hmac: bytes, period_ms: int = LONGEST) -> int:
        """As `AsyncAdmin.renew_token`."""
        return self._run(self._async.renew_token(hmac, period_ms))

    def expire_token(self, hmac: bytes, period_ms: int = AT_ONCE) -> int:
        """As `AsyncAdmin.expire_token`."""
        return self._run(self._async.expire_token(hmac, period_ms))

    def describe_tokens(self, owners: Sequence[str] | None = None) -> list[Token]:
        """As `AsyncAdmin.describe_tokens`."""
        return self._run(self._async.describe_tokens(owners))

    def describe_scram_users(self, users: Sequence[str] | None = None) -> dict[str, dict[str, int]]:
        """As `AsyncAdmin.describe_scram_users`."""
        return self._run(self._async.describe_scram_users(users))

    def alter_scram_user(self, user: str, *, give: ScramPassword | None = None, take_away: str | None = None) -> None:
        """As `AsyncAdmin.alter_scram_user`."""
        self._run(self._async.alter_scram_user(user, give=give, take_away=take_away))

    def describe_configs(
        self, name: str, resource_type: int = TOPIC, *, synonyms: bool = False
    ) -> dict[str, ConfigEntry]:
        """As `AsyncAdmin.describe_configs`."""
        return self._run(self._async.describe_configs(name, resource_type, synonyms=synonyms))

    def alter_configs(
        self, name: str, changes: Sequence[ConfigChange], resource_type: int = TOPIC, *, validate_only: bool = False
    ) -> None:
        """As `AsyncAdmin.alter_configs`."""
        self._run(self._async.alter_configs(name, changes, resource_type, validate_only=validate_only))

    def list_config_resources(self, resource_type: int) -> list[str]:
        """As `AsyncAdmin.list_config_resources`."""
        return self._run(self._async.list_config_resources(resource_type))

    def create_partitions(
        self, topics: Mapping[str, MorePartitions], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> None:
        """As `AsyncAdmin.create_partitions`."""
        self._run(self._async.create_partitions(topics, validate_only=validate_only, timeout_ms=timeout_ms))

    def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None, *, unclean: bool = False, timeout_ms: int | None = None
    ) -> dict[TopicPartition, BrokerError | None]:
        """As `AsyncAdmin.elect_leaders`."""
        return self._run(self._async.elect_leaders(partitions, unclean=unclean, timeout_ms=timeout_ms))

    def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int | BrokerError]:
        """As `AsyncAdmin.delete_records`."""
        return self._run(self._async.delete_records(offsets, timeout_ms=timeout_ms))

    def describe_log_dirs(self, brokers: Iterable[int]) -> dict[int, dict[str, LogDirDescription]]:
        """As `AsyncAdmin.describe_log_dirs`."""
        return self._run(self._async.describe_log_dirs(brokers))

    def alter_replica_log_dirs(self, paths: Mapping[Replica, str]) -> dict[Replica, BrokerError | None]:
        """As `AsyncAdmin.alter_replica_log_dirs`."""
        return self._run(self._async.alter_replica_log_dirs(paths))

    def read_batches(self, replica: Replica, first: int, end: int) -> ReplicaBatches:
        """As `AsyncAdmin.read_batches`."""
        return self._run(self._async.read_batches(replica, first, end))

    def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, BrokerError | None]:
        """As `AsyncAdmin.alter_partition_reassignments`."""
        altered = self._async.alter_partition_reassignments(
            targets, allow_replication_factor_change=allow_replication_factor_change, timeout_ms=timeout_ms
        )
        return self._run(altered)

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """As `AsyncAdmin.list_partition_reassignments`."""
        return self._run(self._async.list_partition_reassignments(partitions, timeout_ms=timeout_ms))

    def new_producer_id(self) -> tuple[int, int]:
        """As `AsyncAdmin.new_producer_id`."""
        return self._run(self._async.new_producer_id())

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False, confirmed: bool = False
    ) -> dict[TopicPartition, ListedOffset]:
        """As `AsyncAdmin.list_offsets`."""
        return self._run(self._async.list_offsets(wanted, read_committed=read_committed, confirmed=confirmed))

    def list_groups(
        self, *, states: Sequence[str] = (), types: Sequence[str] = (), protocol_types: Collection[str] | None = None
    ) -> list[GroupListing]:
        """As `AsyncAdmin.list_groups`."""
        listing = self._async.list_groups(states=states, types=types, protocol_types=protocol_types)
        return self._run(listing)

    def describe_groups(self, group_ids: Sequence[str]) -> dict[str, GroupDescription]:
        """As `AsyncAdmin.describe_groups`."""
        return self._run(self._async.describe_groups(group_ids))

    def describe_streams_groups(self, group_ids: Sequence[str]) -> dict[str, StreamsGroupDescription]:
        """As `AsyncAdmin.describe_streams_groups`."""
        return self._run(self._async.describe_streams_groups(group_ids))

    def delete_groups(self, group_ids: Sequence[str]) -> dict[str, BrokerError | None]:
        """As `AsyncAdmin.delete_groups`."""
        return self._run(self._async.delete_groups(group_ids))

    def list_group_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition] | None = None, *, stable: bool = False
    ) -> Offsets:
        """As `AsyncAdmin.list_group_offsets`."""
        return self._run(self._async.list_group_offsets(group_id, partitions, stable=stable))

    def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]) -> None:
        """As `AsyncAdmin.alter_group_offsets`."""
        self._run(self._async.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        """As `AsyncAdmin.delete_group_offsets`."""
        return self._run(self._async.delete_group_offsets(group_id, partitions))

    def wait_for_leaders(self, name: str, timeout_s: float = 30) -> TopicDescription:
        """Wait until every partition of a topic has a leader."""
        return self._run(wait_for_leaders(self._async, name, timeout_s))
