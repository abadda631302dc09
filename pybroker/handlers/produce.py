"""Produce: appends record batches to the logs of partitions that this broker leads.

Key
    0

Versions
    0-13

Behaviour
    - Served entirely by the data plane (native/wire/src/produce.rs); there is no Python handler.
    - A request for a topic that is not in the data plane's table is passed to the control plane once, and waits until
      the newest metadata is published. Then the data plane serves it: UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID
      for unknown topics. Only Metadata creates topics, not Produce.
    - Batches are stored with the topic's compression.type and level; "producer" keeps the producer's compression.
    - INVALID_TOPIC_EXCEPTION for internal topics (__consumer_offsets, __transaction_state) for every client, also for
      client.id=__admin_client (docs/adr/0098): coordinators load only records that they have written.
    - Invalid records are returned individually (KIP-467, since version 8): those without a key in a compacted topic,
      and those outside message.timestamp.before.max.ms and message.timestamp.after.max.ms.
    - A transactional batch is appended if the transaction is open in the partition, or if its coordinator confirms that
      the partition is part of it, which is verified once for each transaction and partition (KIP-890). A batch after
      the end of its transaction returns INVALID_TXN_STATE, or INVALID_PRODUCER_EPOCH if its epoch is old.
      NOT_ENOUGH_REPLICAS if the coordinator does not respond, so that also old clients retry.
    - TRANSACTIONAL_ID_AUTHORIZATION_FAILED for every partition if the request has transactional batches without a
      transactional id, or with an unauthorized one; INVALID_PRODUCER_ID_MAPPING for batches of two producers.
    - A client above its producer_byte_rate gets its response at once with a throttle time, for which its connection is
      muted (KIP-13, KIP-219). The bytes of whole requests count. request_percentage applies too.
    - acks=0 has no response. The response is sent after the append with acks=1, and when the high watermark has passed
      the batch with acks=all.

Version notes
    - Versions 0-2 have sets of v0 or v1 messages, which Kafka 4 does not accept. As in Kafka 3, a set is stored as one
      v2 batch with its wrapper's codec; a wrapper must be the only message of its set. CORRUPT_MESSAGE for a truncated
      set, of which Kafka appended the complete messages. An empty set is no error.
    - Since version 3, exactly one v2 batch per partition (KIP-98); INVALID_RECORD for anything else.
    - zstd needs version 7 (KIP-110); UNSUPPORTED_COMPRESSION_TYPE before.
    - Before version 4, a failed log directory returns NOT_LEADER_OR_FOLLOWER, so that the client updates its metadata.
    - TRANSACTION_ABORTABLE since version 11, INVALID_TXN_STATE before (KIP-1050). Since version 12, Produce adds the
      partition to the transaction (KIP-890). Before, AddPartitionsToTxn must have added it.
    - Topics by id since version 13; leader hints since version 10 (KIP-951).

Not done
    - Nothing.
"""

from __future__ import annotations

from pybroker.handlers.registry import responded_in_data_plane
from pybroker.protocol.messages.produce import ProduceRequest, TopicProduceData
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_request
from pybroker.security.selectors import select

responded_in_data_plane(
    ProduceRequest,
    requires=[
        of_request(
            Operation.WRITE,
            ResourceType.TRANSACTIONAL_ID,
            select(ProduceRequest.transactional_id),
            when="batches are transactional",
        ),
        of_items(
            Operation.WRITE,
            ResourceType.TOPIC,
            select(ProduceRequest.topic_data, TopicProduceData.name),
            select(ProduceRequest.topic_data, TopicProduceData.topic_id),
        ),
    ],
)
