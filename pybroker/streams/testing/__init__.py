"""Testing topologies: `TopologyTestDriver` and its topics."""

from __future__ import annotations

from pybroker.streams.testing.driver import TopologyTestDriver
from pybroker.streams.testing.topics import TestInputTopic, TestOutputTopic

__all__ = ["TestInputTopic", "TestOutputTopic", "TopologyTestDriver"]
