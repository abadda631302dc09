"""Kafka's own topics: coordinators alone write to them, and consumers by pattern pass them over."""

from __future__ import annotations

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
