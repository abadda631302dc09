"""`pybroker-spark ledgers`: list the ledgers of streaming writes, and delete those without a query.

Owns options, the table and the exit status: 0 done, 1 failed, 2 an invalid option, nothing was deleted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pybroker.client import ClientError
from pybroker_spark.pipelines import kinds
from pybroker_spark.sink import ledgers
from pybroker_spark.sink.errors import LedgerError
from pybroker_spark.sink.ledgers import LedgerState

_DAY_MS = 86_400_000


def main(arguments: list[str]) -> int:
    """List or delete ledgers. Returns the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    absent = next((place for place in options.checkpoints if not place.is_dir()), None)
    if absent is not None:
        parser.error(f"--checkpoints: '{absent}' is no directory on this machine")
    chosen = bool(options.query or options.checkpoints or options.older_than is not None)
    if options.delete and not chosen:
        parser.error("--delete deletes what is chosen by --query, --checkpoints or --older-than: give one of them")
    properties = {**options.command_config, **dict(options.command_property)}
    properties.pop("bootstrap.servers", None)
    try:
        states = _choose(ledgers.list_ledgers(options.bootstrap_server, properties), options)
        if not options.delete:
            print(_table(states))
            return 0
        spared = [state for state in states if state.begun is not None and state.query not in options.query]
        for state in spared:
            text = f"{state.topic} stays: batch {state.begun} is begun and not done; name it by --query to delete it"
            print(text, file=sys.stderr)
        deleted = [state for state in states if state not in spared]
        ledgers.delete_ledgers(options.bootstrap_server, properties, deleted)
        for state in deleted:
            print(f"deleted {state.topic}")
    except (ClientError, LedgerError) as error:
        print(f"pybroker-spark ledgers: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pybroker-spark ledgers",
        description="List the topics that streaming writes keep their progress in, or delete them.",
        allow_abbrev=False,
    )
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT", help="brokers to connect to")
    parser.add_argument(
        "--command-config", default={}, type=kinds.properties, metavar="FILE", help="client settings, passwords too"
    )
    parser.add_argument(
        "--command-property", action="append", default=[], type=kinds.pair, metavar="K=V", help="a client setting"
    )
    parser.add_argument("--query", action="append", default=[], metavar="ID", help="only that of this query")
    parser.add_argument(
        "--checkpoints",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="leave out queries whose checkpoints are in DIR or below",
    )
    parser.add_argument(
        "--older-than", type=kinds.count, metavar="DAYS", help="only those whose last entry is older than so many days"
    )
    parser.add_argument("--delete", action="store_true", help="delete what is chosen")
    return parser


def _choose(states: Iterable[LedgerState], options: argparse.Namespace) -> list[LedgerState]:
    kept = {query for place in options.checkpoints for query in ledgers.queries_of_checkpoints(place)}
    before_ms = None if options.older_than is None else time.time() * 1000 - options.older_than * _DAY_MS
    return [
        state
        for state in states
        if (not options.query or state.query in options.query)
        and state.query not in kept
        and (before_ms is None or (state.last_ms is not None and state.last_ms < before_ms))
    ]


def _table(states: Iterable[LedgerState]) -> str:
    rows = [("QUERY", "DONE", "BEGUN", "LAST ENTRY")]
    for state in states:
        at = "-" if state.last_ms is None else f"{datetime.fromtimestamp(state.last_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
        done, begun = ("-" if number is None else str(number) for number in (state.done, state.begun))
        rows.append((state.query, done, begun, at))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
