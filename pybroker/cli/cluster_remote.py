"""The questions of `pybroker cluster` to any cluster: `cluster-id`, `unregister`, `list-endpoints`, as kafka-cluster.

Owns options and output, which are those of Kafka 4.3's tool. Must not know the protocol: it uses Admin, and works with
any Kafka.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.cli.kafka_exceptions import java_text
from pybroker.client.errors import ClientError, UnservedApiError
from pybroker.client.java.hash_order import HashOrderedSet
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from pybroker.client.administration.admin import Admin
    from pybroker.client.administration.topics import BrokerDescription

_WIDTH_WITHOUT_NODES, _WIDTH_WITHOUT_RACKS = 100, 10


def add_subcommands(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommands."""

    def add(name: str, query: Callable[[Admin, argparse.Namespace], None], what: str) -> argparse.ArgumentParser:
        parser = subcommands.add_parser(name, help=what, description=what, allow_abbrev=False)
        servers = parser.add_mutually_exclusive_group(required=True)
        servers.add_argument("--bootstrap-server", "-b", metavar="HOST:PORT", help="brokers to connect to")
        servers.add_argument("--bootstrap-controller", "-C", metavar="HOST:PORT", help="controllers to connect to")
        parser.add_argument("--command-config", "-c", type=Path, metavar="FILE", help="client settings")
        parser.add_argument("--config", type=Path, metavar="FILE", help="deprecated: --command-config")
        parser.set_defaults(execute=_execute, query=query)
        return parser

    add_json_option(add("cluster-id", _cluster_id, "print the id of a cluster"))
    unregister = add("unregister", _unregister, "unregister a broker that does not return")
    unregister.add_argument("--id", "-i", type=int, required=True, metavar="ID", help="the broker's id")
    endpoints = add("list-endpoints", _list_endpoints, "list the endpoints of the nodes of a cluster")
    endpoints.add_argument("--include-fenced-brokers", action="store_true", help="also list fenced brokers")
    add_json_option(endpoints)


def _execute(arguments: argparse.Namespace) -> int:
    if arguments.config is not None:
        if arguments.command_config is not None:
            raise CommandError("--config and --command-config cannot be specified together.")
        print(
            "Option --config has been deprecated and will be removed in a future version. Use --command-config instead."
        )
        arguments.command_config = arguments.config
    try:
        with open_admin(arguments) as admin:
            arguments.query(admin, arguments)
    except (ClientError, ConfigError) as error:
        raise CommandError(java_text(error) if isinstance(error, ClientError) else str(error)) from None
    return 0


def _cluster_id(admin: Admin, arguments: argparse.Namespace) -> None:
    cluster_id = admin.describe_cluster().cluster_id
    if arguments.json:
        print_json({"clusterId": cluster_id})
    elif cluster_id is None:
        print("No cluster ID found. The Kafka version is probably too old.")
    else:
        print(f"Cluster ID: {cluster_id}")


def _unregister(admin: Admin, arguments: argparse.Namespace) -> None:
    try:
        admin.unregister_broker(arguments.id)
    except UnservedApiError:
        print("The target cluster does not support the broker unregistration API.")
        return
    print(f"Broker {arguments.id} is no longer registered.")


def _list_endpoints(admin: Admin, arguments: argparse.Namespace) -> None:
    of_controllers = arguments.bootstrap_controller is not None
    if of_controllers and arguments.include_fenced_brokers:
        raise CommandError("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    try:
        nodes = admin.describe_cluster(include_fenced=arguments.include_fenced_brokers).brokers
    except UnservedApiError as error:
        print(error)
        return
    if arguments.json:
        print_json([_as_json(node) for node in sorted(nodes, key=lambda node: node.node_id)])
        return
    print("\n".join(endpoint_lines(nodes, of_controllers=of_controllers)))


def _as_json(node: BrokerDescription) -> dict[str, object]:
    return {"id": node.node_id, "host": node.host, "port": node.port, "rack": node.rack, "fenced": node.fenced}


def endpoint_lines(nodes: Sequence[BrokerDescription], *, of_controllers: bool) -> list[str]:
    """Return the table of nodes, in the order of a Java hash table, as Kafka's tool prints them."""
    host = max((len(node.host) for node in nodes), default=_WIDTH_WITHOUT_NODES)
    rack = max((len(node.rack) for node in nodes if node.rack is not None), default=_WIDTH_WITHOUT_RACKS)
    by_id = {node.node_id: node for node in nodes}
    kind = "controller" if of_controllers else "broker"
    rows = [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")]
    for node_id in HashOrderedSet(int, by_id):
        node = by_id[node_id]
        state = "fenced" if node.fenced else "unfenced"
        rows.append((str(node_id), node.host, str(node.port), "null" if node.rack is None else node.rack, state, kind))
    return [
        f"{row[0]:<10} {row[1]:<{host}} {row[2]:<10} {row[3]:<{rack}} "
        + ("" if of_controllers else f"{row[4]:<10} ")
        + f"{row[5]:<15}"
        for row in rows
    ]
