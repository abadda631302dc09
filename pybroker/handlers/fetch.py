"""Fetch: returns record batches from the logs of partitions that this broker leads.

Key
    1

Versions
    0-18

Behaviour
    - Served entirely by the data plane (native/wire/src/fetch.rs); there is no Python handler.
    - A request for a topic that is not in the data plane's table is passed to the control plane once, and waits until
      the newest metadata is published. Then the data plane serves it: UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID
      for unknown topics.
    - A fetch waits for min_bytes, at most max_wait_ms. The append that provides them completes it.
    - read_committed: records below the last stable offset, and the aborted transactions of these records.
    - A consumer above its consumer_byte_rate gets a response without partitions and with a throttle time, for which its
      connection is muted (KIP-13, KIP-219). A response is limited to the bytes that the rate allows in a quota window.
    - At most max.incremental.fetch.session.cache.slots fetch sessions (KIP-227) are cached.

Version notes
    - Versions 0-1 receive v0 messages and 2-3 v1 messages, converted when they are sent; Kafka 4 does not serve these
      versions. Zstd batches are not converted: UNSUPPORTED_COMPRESSION_TYPE (KIP-110). Since version 4, batches are
      sent as they are stored, also v0 and v1 messages in the log of an older Kafka.
    - The first message is complete in every version (KIP-74); Kafka truncates it before version 3.
    - A topic with compression.type=zstd needs version 10 (KIP-110). Earlier versions return
      UNSUPPORTED_COMPRESSION_TYPE, while Kafka 4.3 sends batches that the client cannot read.
    - Before version 6, a failed log directory returns NOT_LEADER_OR_FOLLOWER, so that the client updates its metadata.
    - Topics by id since version 13; leader hints since version 16 (KIP-951).

Not done
    - Followers fetching. Throttling.
"""

from __future__ import annotations

from pybroker.handlers.registry import responded_in_data_plane
from pybroker.protocol.messages.fetch import FetchRequest, FetchTopic
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items
from pybroker.security.selectors import select

responded_in_data_plane(
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
