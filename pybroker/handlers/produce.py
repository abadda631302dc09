"""Produce: record batches go to the logs of the partitions that this broker leads.

Key
    0

Versions
    3-13, advertised from 0

Behaviour
    - Answered wholly in the data plane (native/core/src/wire/produce.rs); no handler runs here.
    - A request that names a topic the data plane's table lacks comes up once, is held until the newest metadata is
      published, and is then decided there, unknown topics failing with UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID.
      Producing creates no topic: only Metadata does.
    - acks=0 gets no answer; acks=1 is answered after the append; acks=all when the high watermark has passed the batch.

Version notes
    - Versions 0-2 carry message sets of before 0.11 and are not served, as in Kafka 4; they are advertised because
      older librdkafka takes an advertised minimum above its own as missing support (KAFKA-18659).
    - Topics by id from version 13 on; leader hints from version 10 on (KIP-951).

Not done
    - Message sets of versions 0-2. Transactions. Throttling.
"""

from __future__ import annotations

from pybroker.handlers.registry import answered_in_data_plane
from pybroker.protocol.messages.produce import ProduceRequest

answered_in_data_plane(ProduceRequest, advertised_min=0)
