"""Admin's calls that list, describe and delete groups, and read and change their committed offsets.

Owns the choice of the coordinator, and of the describe API for either group protocol. `AsyncAdmin` inherits the
calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pybroker.client.administration.groups import (
    GroupDescription,
    GroupListing,
    MemberDescription,
    OffsetAndMetadata,
    Offsets,
)
from pybroker.client.administration.topics import BrokerDescription, TopicPartition
from pybroker.client.consuming import group_offsets
from pybroker.client.errors import BrokerError, UnservedApiError
from pybroker.client.network.cluster import SEND_AGAIN, Cluster, raise_refused, retried
from pybroker.client.network.connection import Connection
from pybroker.protocol.errors import ErrorCode, MalformedMessage
from pybroker.protocol.messages import consumer_group_describe as modern
from pybroker.protocol.messages import delete_groups as delete
from pybroker.protocol.messages import describe_groups as classic
from pybroker.protocol.messages import list_groups as listing
from pybroker.protocol.messages.consumer_protocol import decode_framed
from pybroker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment

CONSUMER = "consumer"
CLASSIC = "classic"


class GroupCalls:
    """The calls about groups over one cluster."""

    cluster: Cluster

    @retried
    async def list_groups(
        self, *, states: Sequence[str] = (), types: Sequence[str] = (), protocol_types: Collection[str] | None = None
    ) -> list[GroupListing]:
        """Return the groups of all brokers, sorted by id, filtered by states, types and protocol types."""
        _, metadata = await self.cluster.metadata(())
        request = listing.ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        found: dict[str, GroupListing] = {}
        for broker in metadata.brokers:
            async with self.cluster.node(broker.node_id) as connection:
                response = await connection.query(request, listing.ListGroupsResponse)
                raise_refused(connection.server, [("groups", response.error_code, None)], again=SEND_AGAIN)
                for group in response.groups:
                    if protocol_types is None or group.protocol_type in protocol_types:
                        found[group.group_id] = GroupListing(
                            group.group_id, group.protocol_type, group.group_state, group.group_type
                        )
        return [found[group_id] for group_id in sorted(found)]

    @retried
    async def describe_groups(self, group_ids: Sequence[str]) -> dict[str, GroupDescription]:
        """Describe groups and their members, of either protocol.

        A group that does not exist is returned as dead, without members. Raises BrokerError for the first group that
        was rejected.
        """
        return {group_id: await self._describe_group(group_id) for group_id in dict.fromkeys(group_ids)}

    @retried
    async def delete_groups(self, group_ids: Sequence[str]) -> dict[str, BrokerError | None]:
        """Delete groups without members, with their offsets. Returns the error of each group, or None."""
        outcome: dict[str, BrokerError | None] = {}
        for group_id in dict.fromkeys(group_ids):

            async def query(connection: Connection, group_id: str = group_id) -> tuple[int, int]:
                request = delete.DeleteGroupsRequest(groups_names=[group_id])
                response = await connection.query(request, delete.DeleteGroupsResponse)
                return response.results[0].error_code, response.results[0].error_code

            code = await self.cluster.query_coordinator(group_id, query)
            outcome[group_id] = self._refusal(group_id, f"group {group_id!r}", code) if code else None
        return outcome

    @retried
    async def list_group_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition] | None = None, *, stable: bool = False
    ) -> Offsets:
        """Return the committed offsets of a group, of all partitions or of some, without missing ones.

        Raises BrokerError.
        """

        async def query(connection: Connection) -> tuple[tuple[Offsets, group_offsets.Outcome, int], int]:
            found = await group_offsets.fetch_offsets(connection, group_id, partitions, stable=stable)
            unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT in found[1].values()
            return found, found[2] or (ErrorCode.UNSTABLE_OFFSET_COMMIT if unstable else 0)

        again = SEND_AGAIN | {ErrorCode.UNSTABLE_OFFSET_COMMIT}
        offsets, errors, code = await self.cluster.query_coordinator(group_id, query, again)
        if code:
            raise self._refusal(group_id, f"group {group_id!r}", code)
        for partition, refused in errors.items():
            raise self._refusal(group_id, f"group {group_id!r} {partition}", refused)
        return offsets

    @retried
    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
    ) -> None:
        """Commit offsets for a group without active members. Raises BrokerError."""
        whole = {p: OffsetAndMetadata(o) if isinstance(o, int) else o for p, o in offsets.items()}

        async def query(connection: Connection) -> tuple[group_offsets.Outcome, int]:
            outcome = await group_offsets.commit_offsets(connection, group_id, whole)
            return outcome, max(outcome.values(), default=0)

        for partition, code in (await self.cluster.query_coordinator(group_id, query)).items():
            if code:
                raise self._refusal(group_id, f"group {group_id!r} {partition}", code)

    @retried
    async def delete_group_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Delete offsets of topics that no member is subscribed to. Returns the error of each partition, or None.

        Raises BrokerError when the whole group was rejected.
        """

        async def query(connection: Connection) -> tuple[tuple[group_offsets.Outcome, int], int]:
            outcome = await group_offsets.delete_offsets(connection, group_id, partitions)
            return outcome, outcome[1]

        errors, code = await self.cluster.query_coordinator(group_id, query)
        if code:
            raise self._refusal(group_id, f"group {group_id!r}", code)
        return {
            partition: self._refusal(group_id, f"group {group_id!r} {partition}", refused) if refused else None
            for partition, refused in errors.items()
        }

    def _refusal(self, group_id: str, what: str, code: int) -> BrokerError:
        refusal = BrokerError.of(self.cluster.known_coordinator(group_id), what, code, None)
        refusal.final = True  # retriable errors were retried before
        return refusal

    async def _describe_group(self, group_id: str) -> GroupDescription:
        async def query(connection: Connection) -> tuple[modern.DescribedGroup, int]:
            request = modern.ConsumerGroupDescribeRequest(group_ids=[group_id])
            (group,) = (await connection.query(request, modern.ConsumerGroupDescribeResponse)).groups
            return group, group.error_code

        try:
            group = await self.cluster.query_coordinator(group_id, query)
        except UnservedApiError:
            return await self._describe_classic(group_id)
        if group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
            return await self._describe_classic(group_id)
        if group.error_code:
            raise self._refusal(group_id, f"group {group_id!r}", group.error_code)
        return GroupDescription(
            group_id=group_id,
            type=CONSUMER,
            state=group.group_state,
            assignor=group.assignor_name,
            coordinator=await self._coordinator(group_id),
            members=tuple(_modern_member(member) for member in group.members),
            group_epoch=group.group_epoch,
            target_epoch=group.assignment_epoch,
        )

    async def _describe_classic(self, group_id: str) -> GroupDescription:
        async def query(connection: Connection) -> tuple[classic.DescribedGroup, int]:
            request = classic.DescribeGroupsRequest(groups=[group_id])
            (group,) = (await connection.query(request, classic.DescribeGroupsResponse)).groups
            return group, group.error_code

        group = await self.cluster.query_coordinator(group_id, query)
        if group.error_code and group.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise self._refusal(group_id, f"group {group_id!r}", group.error_code)
        is_consumer = group.protocol_type in (CONSUMER, "")
        return GroupDescription(
            group_id=group_id,
            type=CLASSIC,
            state=group.group_state or "Dead",
            assignor=group.protocol_data,
            coordinator=await self._coordinator(group_id),
            members=tuple(_classic_member(member, is_consumer) for member in group.members),
            error=group.error_message if group.error_code else None,
        )

    async def _coordinator(self, group_id: str) -> BrokerDescription:
        server = (await self.cluster.coordinator(group_id)).server
        _, metadata = await self.cluster.metadata(())
        for broker in metadata.brokers:
            if f"{broker.host}:{broker.port}" == server:
                return BrokerDescription(broker.node_id, broker.host, broker.port, broker.rack)
        host, _, port = server.rpartition(":")
        return BrokerDescription(-1, host, int(port), None)


def _modern_member(member: modern.Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_partitions(member.assignment),
        target=_partitions(member.target_assignment),
        epoch=member.member_epoch,
        upgraded={0: False, 1: True}.get(member.member_type),
    )


def _partitions(assignment: modern.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(t.topic_name, index) for t in assignment.topic_partitions for index in t.partitions)


def _classic_member(member: classic.DescribedGroupMember, is_consumer: bool) -> MemberDescription:
    assigned: tuple[TopicPartition, ...] = ()
    if is_consumer and member.member_assignment:
        try:
            assignment = decode_framed(ConsumerProtocolAssignment, member.member_assignment)
        except MalformedMessage:
            assignment = ConsumerProtocolAssignment()
        assigned = tuple(TopicPartition(t.topic, i) for t in assignment.assigned_partitions for i in t.partitions)
    return MemberDescription(member.member_id, member.group_instance_id, member.client_id, member.client_host, assigned)
