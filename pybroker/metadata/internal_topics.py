"""Kafka's internal topics: only coordinators write to them, and pattern subscriptions exclude them."""

from __future__ import annotations

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
