"""Produce: record batches go to the logs of the partitions that this broker leads.

Key
    0

Versions
    0-13

Behaviour
    - Answered wholly in the data plane (native/wire/src/produce.rs); no handler runs here.
    - A request that names a topic the data plane's table lacks comes up once, is held until the newest metadata is
      published, and is then decided there, unknown topics failing with UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID.
      Producing creates no topic: only Metadata does.
    - Batches are stored in the topic's compression.type at its level; "producer" leaves them as they came.
    - A topic of Kafka's own (__consumer_offsets, __transaction_state) is INVALID_TOPIC_EXCEPTION for every client, also
      for client.id=__admin_client (docs/adr/0098): what coordinators load is what they have written.
    - Records that break a rule of the topic are named one by one (KIP-467, from version 8 on): those without a key in a
      compacted topic, and those outside message.timestamp.before.max.ms and message.timestamp.after.max.ms.
    - A batch of a transaction is appended when the transaction is open in the partition, or when its coordinator says
      that the partition is part of it: asked once for each transaction and partition (KIP-890). One that comes behind
      the end of its transaction is INVALID_TXN_STATE, or INVALID_PRODUCER_EPOCH where its epoch has gone by. A
      coordinator that does not answer is NOT_ENOUGH_REPLICAS, so that clients of any age try again.
    - A batch of a transaction without a transactional id, or with one that the client may not write as, is
      TRANSACTIONAL_ID_AUTHORIZATION_FAILED for every partition; of two producers, INVALID_PRODUCER_ID_MAPPING.
    - A client beyond its producer_byte_rate is answered at once, with the time that it is to wait; its connection is
      not read for so long (KIP-13, KIP-219). The bytes of whole requests count, and so does its request_percentage.
    - acks=0 gets no answer; acks=1 is answered after the append; acks=all when the high watermark has passed the batch.

Version notes
    - Versions 0-2 carry sets of v0 or v1 messages, which Kafka 4 no longer takes. As in Kafka 3 a set is stored as one
      v2 batch in its wrapper's codec; a wrapper stands alone in its set. A set that is cut is CORRUPT_MESSAGE, where
      Kafka took what is whole of it; an empty one is no error.
    - From version 3 on exactly one v2 batch a partition (KIP-98); anything else is INVALID_RECORD.
    - zstd needs version 7 (KIP-110); earlier it is UNSUPPORTED_COMPRESSION_TYPE.
    - Before version 4 a failed log directory is NOT_LEADER_OR_FOLLOWER, so that the client asks for metadata again.
    - TRANSACTION_ABORTABLE from version 11 on, INVALID_TXN_STATE before (KIP-1050). From version 12 on the partition is
      added to the transaction by what is sent (KIP-890), before it has to have been added by AddPartitionsToTxn.
    - Topics by id from version 13 on; leader hints from version 10 on (KIP-951).

Not done
    - Nothing.
"""

from __future__ import annotations

from pybroker.handlers.registry import answered_in_data_plane
from pybroker.protocol.messages.produce import ProduceRequest, TopicProduceData
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_request
from pybroker.security.selectors import select

answered_in_data_plane(
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
