"""Metrics of a source from a query's progress: its lag behind the newest records.

Spark supports no metrics of a Python source. Owns their computation from the offsets in the progress, with the names
of Spark's Kafka connector.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pybroker_spark.source.offsets import read_checkpoint

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import SourceProgress


def source_metrics(source: SourceProgress) -> dict[str, str]:
    """Return minOffsetsBehindLatest, maxOffsetsBehindLatest and avgOffsetsBehindLatest of a micro-batch's source.

    They equal `metrics` of Spark's Kafka connector; the result is empty before the first micro-batch.
    """
    if not source.endOffset or not source.latestOffset:
        return {}
    read, latest = (read_checkpoint(json.loads(text)) for text in (source.endOffset, source.latestOffset))
    behind = [max(0, latest[partition] - offset) for partition, offset in read.items() if partition in latest]
    if not behind:
        return {}
    return {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": f"{sum(behind) / len(behind):.1f}",
    }
