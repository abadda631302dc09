"""The common part of all jobs: options, session, errors in one line, exit status.

Owns the common command line. Must not know particular jobs. Exit status 0: done, with the result on standard output;
1: failed, with the reason on standard error; 2: an invalid option, nothing was read or written; 130 and 143: ended
by a signal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from pybroker.client import ClientError
from pybroker_spark.delegation import Delegation, DelegationError
from pybroker_spark.pipelines import failures, kinds, streams, topics
from pybroker_spark.pipelines.errors import JobError, UsageError
from pybroker_spark.session import MasterError, SessionError, session


def _no_check(_arguments: argparse.Namespace) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Job:
    """The definition of a job for `main`."""

    name: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[SparkSession, argparse.Namespace], str]
    """Does the work and returns the text to print at the end, or raises JobError."""
    check: Callable[[argparse.Namespace], None] = _no_check
    """Validates options before Spark starts. Raises UsageError."""


def main(job: Job, arguments: list[str] | None = None) -> int:
    """Run one job and return the exit status. A running session is used, and stays open."""
    parser = argparse.ArgumentParser(prog=job.name, description=job.description, allow_abbrev=False)
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT", help="brokers to connect to")
    parser.add_argument(
        "--command-config", default={}, type=kinds.properties, metavar="FILE", help="client settings, passwords too"
    )
    parser.add_argument(
        "--command-property", action="append", default=[], type=kinds.pair, metavar="K=V", help="a client setting"
    )
    parser.add_argument(
        "--delegation-token",
        action="store_true",
        help="tasks sign in by a delegation token, which ends with the job; passwords stay in this program",
    )
    parser.add_argument("--master", help="where Spark runs, unless spark-submit says it; local[*] if nobody does")
    job.add_arguments(parser)
    parsed = parser.parse_args(arguments)
    # The command line overrides the file, as in Kafka's tools. The servers are those of the option.
    given = {**parsed.command_config, **dict(parsed.command_property)}
    parsed.command_property = [(key, value) for key, value in given.items() if key != "bootstrap.servers"]
    try:
        job.check(parsed)
        streams.check(parsed)
        topics.check(parsed)
        with _delegation(parsed):
            print(f"{job.name}: {_in_session(job, parsed)}", flush=True)
    except JobError as error:
        return _failed(job, error, error.status)
    except SessionError as error:
        return _failed(job, error, UsageError.status if isinstance(error, MasterError) else 1)
    except ClientError as error:
        return _failed(job, error, 1)
    except KeyboardInterrupt:
        return 130
    return 0


@contextmanager
def _delegation(parsed: argparse.Namespace) -> Iterator[None]:
    """Have the tasks' clients authenticate by a token, if the option is set. Raises JobError."""
    if not parsed.delegation_token:
        yield
        return
    kind: type[JobError] = UsageError
    try:
        delegation = Delegation(parsed.bootstrap_server, dict(parsed.command_property))
        kind = JobError
        with delegation as token:
            parsed.command_property = list(token.properties.items())
            yield
    except DelegationError as error:
        raise kind(f"--delegation-token: {error}") from None


def _failed(job: Job, error: Exception, status: int) -> int:
    print(f"{job.name}: {error}", file=sys.stderr)
    return status


def _in_session(job: Job, parsed: argparse.Namespace) -> str:
    running = SparkSession.getActiveSession()
    spark = running or session(f"pybroker {job.name}", master=parsed.master)
    if running is None:
        # A job prints one line. Spark's own logs, with a trace of each attempt, are optional.
        spark.sparkContext.setLogLevel(os.environ.get("SPARK_LOG_LEVEL", "OFF"))
    try:
        return job.run(spark, parsed)
    except failures.SPARK_ERRORS as error:
        raise failures.job_error(error, parsed) from None
    finally:
        if running is None:
            spark.stop()
