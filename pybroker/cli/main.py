"""Entry point of `pybroker`: finds the command, imports it, and turns its errors into one line and a status.

Owns the list of commands. Must not import what a command needs: starting a broker costs only what a broker uses.
"""

from __future__ import annotations

import argparse
import gc
import sys

from pybroker.cli import standard_output
from pybroker.cli.errors import CommandError
from pybroker.cli.parsers import build_parser, module_of, nearest

COMMANDS = {
    "acls": "add, remove and list access control entries",
    "broker-api-versions": "show which versions of which APIs brokers serve",
    "client-metrics": "say which clients push which metrics",
    "cluster": "run a cluster of brokers on this machine; ask any cluster who it is",
    "completion": "print a script that completes commands in a shell",
    "config": "show what the settings of a node come to, or judge them before a start",
    "configs": "show and change the settings of topics and brokers",
    "console-consumer": "print the records of topics",
    "console-producer": "send lines of standard input as records",
    "consumer-groups": "list, describe, reset and delete consumer groups",
    "consumer-perf-test": "measure consuming",
    "delegation-tokens": "make, renew, end and list delegation tokens",
    "delete-records": "give logs a later start",
    "doctor": "check the settings and this machine before a broker starts",
    "dump-log": "show what is in the files of a log",
    "e2e-latency": "measure the way of one record and back",
    "features": "show and change the levels of features",
    "format": "give the log directories of a node an identity before its first start",
    "get-offsets": "get offsets of partitions by time",
    "groups": "list groups of all types",
    "leader-election": "give partitions their preferred leader, or any where they have none",
    "log-cleaner": "show how dirty compacted logs are, and what their last pass did",
    "log-dirs": "show what lies in the log directories of brokers",
    "log-level": "show and change the levels of brokers' loggers while they run",
    "man": "write manual pages of all commands",
    "metadata-quorum": "show and change who votes about the metadata log",
    "metadata-shell": "browse the metadata of a cluster like a file system",
    "producer-perf-test": "measure producing",
    "random-uuid": "print an id for a new cluster",
    "reassign-partitions": "give partitions other replicas, or replicas another log directory",
    "replica-verification": "compare the replicas of partitions, or their logs on disk",
    "snapshot": "save and restore the metadata of one node",
    "start": "run a broker, in the foreground or as a service",
    "stop": "stop the broker of a data directory",
    "storage-info": "show whose the log directories of a node are",
    "top": "show what a cluster is doing now: topics and partitions by rate, groups by lag",
    "topics": "create, list, describe, enlarge and delete topics",
    "transactions": "list and describe transactions, and end those that hang",
    "verifiable-consumer": "read a topic, and print what happens as events of JSON",
    "verifiable-producer": "send numbers to a topic, and print the fate of each as JSON",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        return _without_command(arguments)
    # Imports make no garbage. A command that keeps running enables the collector when it has started.
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
            # The interpreter would flush, too late for a status and a line of ours.
            standard_output.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # `start` continues without a reader: this is the failure of a connection or of another pipe.
        if name == "start" or not standard_output.has_failed():
            raise
        # The reader of the output has gone, as in `pybroker topics --list | head`.
        standard_output.abandon()
        return 1
    except OSError as error:
        if not standard_output.says_full(error):
            raise
        where = " to standard output" if standard_output.has_failed() else ""
        standard_output.abandon()
        print(f"pybroker {name}: cannot write{where}: {error.strerror}", file=sys.stderr)
        return 1


def _failure_of_output(error: CommandError) -> OSError | None:
    """Return the failed write to standard output that a command's error comes from, None where it has another cause.

    Closing a client after such a write may fail, too, and what the command says of that is beside the point.
    """
    cause = error.__context__
    while cause is not None:
        if isinstance(cause, BrokenPipeError) or (isinstance(cause, OSError) and standard_output.says_full(cause)):
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
        from pybroker import __version__

        print(__version__)
        return 0
    if arguments:
        print(f"pybroker: {_no_command(arguments[0])}", file=sys.stderr)
    else:
        parser.print_help(sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
