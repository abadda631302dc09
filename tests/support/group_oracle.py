"""Kafka's own arithmetic of KIP-848: what there is to ask is in `java/GroupOracle.java`."""

from __future__ import annotations

from functools import partial

from tests.support import java_oracle

GroupOracle = java_oracle.JavaOracle
running = partial(java_oracle.running, "GroupOracle")
