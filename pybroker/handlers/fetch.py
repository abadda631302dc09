"""Fetch: record batches come from the logs of the partitions that this broker leads.

Key
    1

Versions
    0-18

Behaviour
    - Answered wholly in the data plane (native/wire/src/fetch.rs); no handler runs here.
    - A request that names a topic the data plane's table lacks comes up once, is held until the newest metadata is
      published, and is then decided there, unknown topics failing with UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID.
    - A fetch waits for min_bytes at most max_wait_ms, and is answered by the append that brings them.
    - read_committed: records below the last stable offset, and the aborted transactions that have records among them.
    - A consumer beyond its consumer_byte_rate gets an answer without partitions, and the time that it is to wait; its
      connection is not read for so long (KIP-13, KIP-219). No answer is larger than what its rate allows in a window.
    - Fetch sessions (KIP-227) are kept in max.incremental.fetch.session.cache.slots slots.

Version notes
    - Versions 0-1 get v0 messages and 2-3 v1 messages, converted while they are sent, which Kafka 4 no longer does.
      Batches of zstd cannot be: UNSUPPORTED_COMPRESSION_TYPE (KIP-110). From version 4 on everything goes as it is
      stored, also v0 and v1 messages in the log of an older Kafka.
    - The first message is given whole in every version (KIP-74); Kafka cut it before version 3.
    - A topic with compression.type=zstd needs version 10 (KIP-110); earlier it is UNSUPPORTED_COMPRESSION_TYPE, where
      Kafka 4.3 sends what the client cannot read.
    - Before version 6 a failed log directory is NOT_LEADER_OR_FOLLOWER, so that the client asks for metadata again.
    - Topics by id from version 13 on; leader hints from version 16 on (KIP-951).

Not done
    - Followers fetching. Throttling.
"""

from __future__ import annotations

from pybroker.handlers.registry import answered_in_data_plane
from pybroker.protocol.messages.fetch import FetchRequest, FetchTopic
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select

answered_in_data_plane(
    FetchRequest,
    requires=[
        of_items(
            Operation.READ,
            ResourceType.TOPIC,
            select(FetchRequest.topics, FetchTopic.topic),
            select(FetchRequest.topics, FetchTopic.topic_id),
            when="a consumer fetches",
        ),
        of_items(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, when="a follower fetches"),
    ],
)
