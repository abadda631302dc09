"""Topologies of `pybroker.streams` as streaming queries (`docs/adr/0110-a-topology-is-one-streaming-query.md`).

query = pybroker_spark.streams.run(builder.build(), spark, settings, checkpoint="checkpoints/word-count")
"""

from pybroker_spark.streams.query import run

__all__ = ["run"]
