"""Broker processes for comparisons and tests: started on loopback, stopped by their process id.

Owns their artefacts, configuration files and readiness. Must not know what is measured on them.
"""

from pybench.peers.errors import MissingToolError, PeerError
from pybench.peers.java import java_command, run_java_tool
from pybench.peers.kafka import Kafka

__all__ = ["Kafka", "MissingToolError", "PeerError", "java_command", "run_java_tool"]
