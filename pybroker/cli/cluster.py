"""`pybroker cluster`: a cluster of brokers on this machine in one line, and questions to any cluster.

Owns the list of the subcommands. Each is implemented in a module of its own: `cluster_local` for processes,
`cluster_remote` for queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli import cluster_local, cluster_remote

if TYPE_CHECKING:
    import argparse

DESCRIPTION = (
    "Run a cluster of brokers on this machine, for development and CI: start, status, stop, kill, pause, resume, "
    "restart. Describe any cluster, with options and output of kafka-cluster: cluster-id, unregister, list-endpoints."
)


JSON = {
    "status": {
        "clusterId": "string",
        "brokers": [
            {"id": "integer", "address": "string", "process": "integer|null", "paused": "boolean"},
        ],
    },
    "cluster-id": {"clusterId": "string|null"},
    "list-endpoints": [
        {"id": "integer", "host": "string", "port": "integer", "rack": "string|null", "fenced": "boolean"}
    ],
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    subcommands = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    cluster_local.add_subcommands(subcommands)
    cluster_remote.add_subcommands(subcommands)


def run(arguments: argparse.Namespace) -> int:
    """Run a subcommand and return its exit status."""
    return int(arguments.execute(arguments))
