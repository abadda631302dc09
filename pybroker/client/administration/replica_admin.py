"""Admin's call about one replica: read the headers of its batches.

Owns the fetch from a replica that need not be the leader (KIP-392), and the header fields that identify a batch.
`AsyncAdmin` inherits the call.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from pybroker.client.administration.log_dirs import BatchMark, Replica, ReplicaBatches
from pybroker.client.errors import ClientError
from pybroker.client.network.cluster import Cluster, partition_refusal, raise_first, retried
from pybroker.client.network.connection import Connection
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import fetch

_LAST_VERSION_WITH_NAMES = 12
_FETCH_BYTES = 1 << 20
_MAX_WAIT_MS = 500
_FETCHES_WITHOUT_RECORDS = 20
"""A follower may lag behind the leader. After so many empty responses its batches so far are returned."""
_HEAD = struct.Struct(">qiiBI")
"""Layout of format 2: base offset, length of the rest, leader epoch, format, checksum."""
_OLD_HEAD = struct.Struct(">qiIB")
"""Layout of formats 0 and 1: offset, length, checksum, format."""
_MAGIC_AT = 16
_LENGTH_COUNTS_FROM = 12
_LAST_DELTA = struct.Struct(">i")
_LAST_DELTA_AT = 23


class ReplicaCalls:
    """The call about one replica of one cluster."""

    cluster: Cluster

    @retried
    async def read_batches(self, replica: Replica, first: int, end: int) -> ReplicaBatches:
        """Return the batches of a replica from offset `first` up to `end`, or to its log end if that is lower.

        The replica may be a follower, which returns records up to its high watermark only. Offsets below its log
        start offset are skipped. Raises BrokerError.
        """
        position, empty = first, 0
        marks: list[BatchMark] = []
        async with self.cluster.broker(replica.broker) as connection:
            while position < end and empty < _FETCHES_WITHOUT_RECORDS:
                response = await _fetch(connection, replica, position)
                if response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and response.log_start_offset > position:
                    position = first = response.log_start_offset
                    marks.clear()
                    continue
                refusal = partition_refusal(connection.server, replica.partition, response.error_code)
                raise_first([] if refusal is None else [refusal])
                found = [mark for mark in parse_marks(response.records or b"") if mark.last_offset >= position]
                marks += found
                empty = 0 if found else empty + 1
                position = found[-1].last_offset + 1 if found else position
        return ReplicaBatches(first, position, tuple(mark for mark in marks if mark.base_offset < end))


async def _fetch(connection: Connection, replica: Replica, offset: int) -> fetch.PartitionData:
    requested = fetch.FetchPartition(
        partition=replica.partition.partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
    )
    request = fetch.FetchRequest(
        max_wait_ms=_MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        session_epoch=-1,
        topics=[fetch.FetchTopic(topic=replica.partition.topic, partitions=[requested])],
    )
    response = await connection.query(request, fetch.FetchResponse, _LAST_VERSION_WITH_NAMES)
    found = [partition for topic in response.responses for partition in topic.partitions]
    if len(found) != 1:
        raise ClientError(f"{connection.server} returned {len(found)} partitions, expected 1")
    return found[0]


def parse_marks(records: bytes) -> Iterator[BatchMark]:
    """Yield the marks of the complete batches. Raises ClientError for an invalid length."""
    position = 0
    while len(records) - position > _LAST_DELTA_AT + _LAST_DELTA.size:
        base, length = struct.unpack_from(">qi", records, position)
        if length < _MAGIC_AT + 1 - _LENGTH_COUNTS_FROM:
            raise ClientError(f"a batch at offset {base} claims a length of {length}")
        if position + _LENGTH_COUNTS_FROM + length > len(records):
            return
        if records[position + _MAGIC_AT] < 2:
            _, _, checksum, _ = _OLD_HEAD.unpack_from(records, position)
            yield BatchMark(base, base, -1, checksum)
        else:
            _, _, epoch, _, checksum = _HEAD.unpack_from(records, position)
            (delta,) = _LAST_DELTA.unpack_from(records, position + _LAST_DELTA_AT)
            yield BatchMark(base, base + delta, epoch, checksum)
        position += _LENGTH_COUNTS_FROM + length
