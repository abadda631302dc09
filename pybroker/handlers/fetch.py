"""Fetch: record batches come from the logs of the partitions that this broker leads.

Key
    1

Versions
    4-18

Behaviour
    - Answered wholly in the data plane (native/core/src/wire/fetch.rs); no handler runs here.
    - A request that names a topic the data plane's table lacks comes up once, is held until the newest metadata is
      published, and is then decided there, unknown topics failing with UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID.
    - A fetch waits for min_bytes at most max_wait_ms, and is answered by the append that brings them.
    - read_committed: records below the last stable offset, and the aborted transactions that have records among them.
    - Fetch sessions (KIP-227) are kept in max.incremental.fetch.session.cache.slots slots.

Version notes
    - Topics by id from version 13 on; leader hints from version 16 on (KIP-951).

Not done
    - Message sets of versions 0-3. Followers fetching. Throttling.
"""

from __future__ import annotations

from pybroker.handlers.registry import answered_in_data_plane
from pybroker.protocol.messages.fetch import FetchRequest

answered_in_data_plane(FetchRequest)
