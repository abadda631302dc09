"""Load from many machines: producers and consumers as long tasks of one Spark job, with one combined measurement.

`run(spark, plan)` takes a `LoadPlan` of clients and returns a `Result`: rows for every second of every client,
totals, exact percentiles, the outcome of each client, and acknowledged records by partition, for an audit. Prints
nothing and writes no file. It uses the broker only by `pybroker.client`; importing it does not import PySpark.
"""

from pybroker_spark.load.board import Board, Outcome, Standing
from pybroker_spark.load.errors import LoadError, ScenarioError, TooFewSlotsError
from pybroker_spark.load.interval import PHASES, STEADY, WARM_UP, Interval
from pybroker_spark.load.job import run
from pybroker_spark.load.plan import (
    CONFLUENT,
    ENGINES,
    PYBROKER,
    STAMP_BYTES,
    ConsumerPlan,
    LoadPlan,
    ProducerPlan,
    build_producer_properties,
    deal,
    deal_by_weight,
)
from pybroker_spark.load.result import Acknowledged, Result, Total, total
from pybroker_spark.load.schedule import UNLIMITED, Schedule, Step
from pybroker_spark.load.slots import context_of, stable_slots

__all__ = [
    "CONFLUENT",
    "ENGINES",
    "PHASES",
    "PYBROKER",
    "STAMP_BYTES",
    "STEADY",
    "UNLIMITED",
    "WARM_UP",
    "Acknowledged",
    "Board",
    "ConsumerPlan",
    "Interval",
    "LoadError",
    "LoadPlan",
    "Outcome",
    "ProducerPlan",
    "Result",
    "ScenarioError",
    "Schedule",
    "Standing",
    "Step",
    "TooFewSlotsError",
    "Total",
    "build_producer_properties",
    "context_of",
    "deal",
    "deal_by_weight",
    "run",
    "stable_slots",
    "total",
]
