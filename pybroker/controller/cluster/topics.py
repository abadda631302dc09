"""Creating and deleting topics: names, numbers, placement.

Owns Kafka's rules for both.
"""

from __future__ import annotations

from pybroker.controller.cluster.events import NewTopic

__all__ = ["NewTopic"]
