"""Entry point of `pybroker`: finds the command, imports it, and turns its errors into one line and a status.

Owns the list of commands. Must not import the dependencies of a command: a start imports only a broker's modules.
"""

from __future__ import annotations

import argparse
import gc
import sys

from pybroker import __version__
from pybroker.cli import standard_output
from pybroker.cli.errors import CommandError
from pybroker.cli.parsers import build_parser, module_of, nearest

COMMANDS = {
    "acls": "add, remove and list access control entries",
    "broker-api-versions": "print the API versions that each broker serves",
    "client-metrics": "configure client metrics subscriptions",
    "cluster": "run a cluster of brokers on this machine; describe any cluster",
    "completion": "print a script that completes commands in a shell",
    "config": "print the effective settings of a node, or validate them before a start",
    "configs": "describe and change the settings of topics, brokers, groups and clients",
    "console-consumer": "print the records of topics",
    "console-producer": "send lines of standard input as records",
    "consumer-groups": "list, describe, reset and delete consumer groups",
    "consumer-perf-test": "measure consuming",
    "delegation-tokens": "create, renew, expire and describe delegation tokens",
    "delete-records": "delete the records before an offset",
    "doctor": "check the settings and this machine before a broker starts",
    "dump-log": "print the contents of log and index files",
    "e2e-latency": "measure the time from producing a record to consuming it",
    "features": "describe and change feature levels",
    "format": "format the log directories of a node before its first start",
    "get-offsets": "print offsets of partitions by time",
    "groups": "list groups of all types",
    "leader-election": "elect preferred leaders, or any replica for leaderless partitions",
    "log-cleaner": "print the dirty ratio and the last cleaning of compacted logs",
    "log-dirs": "describe the log directories of brokers",
    "log-level": "print and change the log levels of running brokers",
    "man": "write manual pages of all commands",
    "metadata-quorum": "describe and change the voters of the metadata quorum",
    "metadata-shell": "browse the metadata of a cluster like a file system",
    "producer-perf-test": "measure producing",
    "random-uuid": "print an id for a new cluster",
    "reassign-partitions": "move partitions to other brokers or log directories",
    "replica-verification": "compare the replicas of partitions, or their logs on disk",
    "snapshot": "save and restore the metadata of one node",
    "start": "run a broker, in the foreground or as a service",
    "stop": "stop the broker of a data directory",
    "storage-info": "print the node id and cluster id of a node's log directories",
    "streams-groups": "list, describe, reset and delete groups of Kafka Streams applications",
    "top": "monitor a cluster: topics and partitions by rate, groups by lag",
    "topics": "create, list, describe, alter and delete topics",
    "transactions": "list and describe transactions, and abort hanging ones",
    "verifiable-consumer": "consume a topic, and print each event as JSON, for tests",
    "verifiable-producer": "produce numbers to a topic, and print the result of each as JSON, for tests",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        return _without_command(arguments)
    # Imports create no garbage. A long-running command enables the collector after its start.
    gc.disable()
    command = module_of(name)
    parser = build_parser(name, command)
    try:
        try:
            return int(command.run(parser.parse_args(arguments[1:])))
        except CommandError as error:
            if (failure := _failure_of_output(error)) is not None:
                raise failure from None
            print(f"pybroker {name}: {error}", file=sys.stderr)
            return error.status
        finally:
            # The interpreter's own flush is too late for our status and message.
            standard_output.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # `start` continues without a reader: this is the failure of a connection or of another pipe.
        if name == "start" or not standard_output.has_failed():
            raise
        # The reader of the output has exited, as in `pybroker topics --list | head`.
        standard_output.abandon()
        return 1
    except OSError as error:
        if not standard_output.is_disk_full(error):
            raise
        where = " to standard output" if standard_output.has_failed() else ""
        standard_output.abandon()
        print(f"pybroker {name}: cannot write{where}: {error.strerror}", file=sys.stderr)
        return 1


def _failure_of_output(error: CommandError) -> OSError | None:
    """Return the failed write to standard output that caused a command's error, None for another cause.

    Closing a client after such a write may fail, too, and the command's message about that is irrelevant.
    """
    cause = error.__context__
    while cause is not None:
        if isinstance(cause, BrokenPipeError) or (isinstance(cause, OSError) and standard_output.is_disk_full(cause)):
            return cause if standard_output.has_failed() else None
        cause = cause.__context__
    return None


def _no_command(name: str) -> str:
    near = nearest(name, list(COMMANDS))
    meant = f"; is {near} meant?" if near else ";"
    return f"no command {name}{meant} there are {', '.join(COMMANDS)}"


def _without_command(arguments: list[str]) -> int:
    lines = [f"  {name:<20} {what}" for name, what in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="pybroker",
        usage="pybroker COMMAND [options]",
        description="Kafka without the JVM.",
        epilog="commands:\n" + "\n".join(lines) + "\n\n`pybroker COMMAND --help` lists the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and end")
    parsed, _ = parser.parse_known_args([argument for argument in arguments if argument.startswith("-")])
    if parsed.version:
        print(__version__)
        return 0
    if arguments:
        print(f"pybroker: {_no_command(arguments[0])}", file=sys.stderr)
    else:
        parser.print_help(sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
