"""Kafka's own computations for KIP-848. `java/GroupOracle.java` lists the supported questions."""

from __future__ import annotations

from functools import partial

from tests.support import java_oracle

GroupOracle = java_oracle.JavaOracle
running = partial(java_oracle.running, "GroupOracle")
