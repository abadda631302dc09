"""The task slots of a Spark application, and whether they suffice for a load's tasks.

Barrier mode starts all tasks of a stage at once or none. Spark detects too few slots only after checks of its own,
which take long by default; here they are detected before the job is submitted.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pybroker_spark.load.errors import LoadError, TooFewSlotsError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_REGISTRATION_S = 15.0
"""Seconds to wait for missing executors: those of a new cluster register one after another."""

_STABLE_S = 2.0


def context_of(spark: SparkSession) -> SparkContext:
    """Return the context that a load needs. Raises LoadError in a session of Spark Connect, which has none."""
    from pyspark.errors import PySparkAttributeError

    try:
        return spark.sparkContext
    except PySparkAttributeError:
        raise LoadError(
            "a load runs as a barrier job of RDDs, which Spark Connect does not offer: run it in a session of the"
            " master itself, as pybroker_spark.session(master=...) makes one"
        ) from None


def master_of(context: SparkContext) -> str:
    """Return the master's address."""
    return str(context.master)


def count_slots(context: SparkContext) -> int:
    """Return how many tasks can run at once, as in Spark's own check of barrier stages."""
    scala = context._jsc.sc()
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def stable_slots(context: SparkContext) -> int:
    """Return that number once it has not changed for a while: executors of a cluster register one after another."""
    slots = count_slots(context)
    if is_one_process(master_of(context)):
        return slots
    begun = changed = time.monotonic()
    while time.monotonic() - begun < _REGISTRATION_S and (not slots or time.monotonic() - changed < _STABLE_S):
        time.sleep(0.1)
        if (now := count_slots(context)) != slots:
            slots, changed = now, time.monotonic()
    return slots


def require_slots(context: SparkContext, tasks: int) -> None:
    """Wait until so many tasks can run at once. Raises TooFewSlotsError with the setting to change."""
    deadline = time.monotonic() + (0.0 if is_one_process(master_of(context)) else _REGISTRATION_S)
    while (slots := count_slots(context)) < tasks:
        if time.monotonic() >= deadline:
            raise TooFewSlotsError(explain(master_of(context), tasks, slots))
        time.sleep(0.1)


def is_one_process(master: str) -> bool:
    """Whether all tasks run in the driver's process, so that no executor will register."""
    return master == "local" or master.startswith("local[")


def explain(master: str, tasks: int, slots: int | None = None) -> str:
    """Return the message about too few slots, with the fix."""
    has = "has fewer" if slots is None else f"has {slots}"
    if is_one_process(master):
        more = f"--master 'local[{tasks}]'"
    elif master.startswith("local-cluster["):
        _executors, cores, memory = master.removeprefix("local-cluster[").rstrip("]").split(",")
        more = f"--master 'local-cluster[{-(-tasks // max(1, int(cores)))},{cores},{memory}]'"
    else:
        more = "more or larger executors (spark.executor.instances, spark.executor.cores)"
    fewer = f"set --tasks {slots}" if slots else "set --tasks lower"
    return f"a load of {tasks} tasks needs {tasks} slots at once, and {master} {has}: {fewer}, or give it {more}"
