"""The command `pybroker-spark`, with the jobs and the maintenance of ledgers as subcommands.

Owns the list of subcommands. A job declares its own options; those of ledgers are in `ledger_command`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

JOBS: Final = {
    "archive": "write topics to Parquet files",
    "ingest": "send the rows of files to a topic",
    "word-count": "count the words of a topic",
}
LEDGERS: Final = "ledgers"
_USAGE: Final = "usage: pybroker-spark COMMAND [options]"


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    name = given[0] if given else ""
    if name == LEDGERS:
        from pybroker_spark.sink import ledger_command

        return ledger_command.main(given[1:])
    if name in JOBS:
        from pybroker_spark.pipelines import job

        module = import_module(f"pybroker_spark.pipelines.{name.replace('-', '_')}")
        return job.main(module.JOB, given[1:])
    commands = {**JOBS, LEDGERS: "list and delete the ledgers of streaming writes"}
    lines = "\n".join(f"  {one:<12}{what}" for one, what in commands.items())
    helping = name in ("-h", "--help")
    problem = f"pybroker-spark: no command '{name}'\n" if name and not helping else ""
    print(f"{problem}{_USAGE}\n\n{lines}", file=sys.stdout if helping else sys.stderr)
    return 0 if helping else 2
