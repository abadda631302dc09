"""`pybroker broker-api-versions`: what each broker serves of each API, as kafka-broker-api-versions prints it.

Owns the layout, and the list of APIs that a broker may lack. Works with any Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.cli.kafka_exceptions import java_text
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.messages import request_class

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from pybroker.client.administration.topics import BrokerDescription

DESCRIPTION = "Show which versions of each API the brokers serve. Options and output are Kafka's."

JSON = {
    "": [
        {
            "broker": "integer",
            "host": "string",
            "port": "integer",
            "rack": "string|null",
            "error": "string|null",
            "apis": [{"key": "integer", "name": "string|null", "min": "integer", "max": "integer"}],
        }
    ]
}
_NOT_FOR_CLIENTS = frozenset({4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82})
"""APIs between nodes, and those removed with ZooKeeper: clients do not need them."""
_NEWEST_UNDECLARED = {
    52: 2,
    53: 1,
    54: 1,
    71: 0,
    72: 0,
    76: 1,
    77: 1,
    78: 2,
    79: 2,
    83: 0,
    84: 0,
    85: 1,
    86: 0,
    87: 1,
    88: 0,
    89: 0,
    90: 1,
    91: 0,
    92: 0,
}
"""The newest version in Kafka 4.3 of APIs without a declaration here."""
_KAFKAS = range(93)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_cluster_options(parser)
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a paragraph for each broker; returns 0."""
    document = []
    try:
        with open_admin(arguments, {"client.id": "broker-api-versions"}) as admin:
            for broker in admin.describe_cluster().brokers:
                served: Mapping[int, tuple[int, int]] = {}
                failure = None
                try:
                    served = admin.describe_api_versions(broker.node_id)
                except ClientError as error:
                    failure = java_text(error)
                if arguments.json:
                    document.append(_as_json(broker, served, failure))
                else:
                    print(f"{_name(broker)} -> {_shown(served) if failure is None else f'ERROR: {failure}'}")
    except (ClientError, ConfigError) as error:
        raise CommandError(str(error)) from None
    if arguments.json:
        print_json(document)
    return 0


def _as_json(broker: BrokerDescription, served: Mapping[int, tuple[int, int]], failure: str | None) -> dict[str, Any]:
    apis = [
        {"key": key, "name": _api(key) if key in _KAFKAS else None, "min": lowest, "max": highest}
        for key, (lowest, highest) in sorted(served.items())
    ]
    at = {"broker": broker.node_id, "host": broker.host, "port": broker.port, "rack": broker.rack}
    return {**at, "error": failure, "apis": apis}


def _name(broker: BrokerDescription) -> str:
    fenced = "true" if broker.fenced else "false"
    return f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {broker.rack or 'null'} isFenced: {fenced})"


def _shown(served: Mapping[int, tuple[int, int]]) -> str:
    missed = set(_KAFKAS) - _NOT_FOR_CLIENTS - served.keys()
    lines = {key: _served(key, *versions) for key, versions in served.items()}
    lines |= {key: f"{_api(key)}({key}): UNSUPPORTED" for key in missed}
    return "(\n\t" + ",\n\t".join(lines[key] for key in sorted(lines)) + "\n)"


def _served(key: int, lowest: int, highest: int) -> str:
    versions = str(lowest) if lowest == highest else f"{lowest} to {highest}"
    if key not in _KAFKAS:
        return f"UNKNOWN({key}): {versions}"
    first, last = _known(key)
    if last < lowest:
        usable = "unusable: node too new"
    elif highest < first:
        usable = "unusable: node too old"
    else:
        usable = f"usable: {min(last, highest)}"
    return f"{_api(key)}({key}): {versions} [{usable}]"


def _known(key: int) -> tuple[int, int]:
    try:
        versions = request_class(key).__message__.versions
    except KeyError:
        return 0, _NEWEST_UNDECLARED.get(key, -1)
    return versions.first, versions.last


def _api(key: int) -> str:
    """Return Kafka's name of an API, as `ListOffsets`."""
    return "".join(map(str.capitalize, ApiKey(key).name.split("_")))
