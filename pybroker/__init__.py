"""pybroker: Kafka without the JVM."""

from __future__ import annotations

__version__ = "0.1.0"
