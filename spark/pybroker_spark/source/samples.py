"""Estimates the size of records, for micro-batches that are limited by bytes.

Kafka returns offsets but no sizes. The estimate is the mean size of key and value of the first available records in
each partition. Runs on the driver, with one short Fetch for each partition with records.
"""

from __future__ import annotations

from typing import Final

from pybroker.client import BrokerError, TopicPartition
from pybroker_spark.source import fetchers
from pybroker_spark.source.offsets import Offsets
from pybroker_spark.source.options import ReadOptions

_SAMPLE_BYTES: Final = 65_536
_WAIT_S: Final = 1.0


def row_bytes(options: ReadOptions, waiting: Offsets) -> dict[TopicPartition, float]:
    """Return the estimated bytes of a record by partition; `waiting` are the next offsets.

    A partition without a sample in time gets the mean of the others. A deleted offset is reported by the read.
    """
    found: dict[TopicPartition, float] = {}
    properties = {**options.properties, "max.partition.fetch.bytes": str(_SAMPLE_BYTES)}
    with fetchers.lent(options.bootstrap_servers, properties) as fetcher:
        for partition, offset in waiting.items():
            fetcher.assign({partition: offset})
            try:
                taken = fetcher.take(_WAIT_S, columns=("offset",))
            except BrokerError:
                continue
            if taken is not None and taken.rows:
                found[partition] = max(taken.bytes / taken.rows, 1.0)
    mean = sum(found.values()) / len(found) if found else 1.0
    return {partition: found.get(partition, mean) for partition in waiting}
