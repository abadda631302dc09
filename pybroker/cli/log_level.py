"""`pybroker log-level`: show and change the levels of brokers' loggers while they run (KIP-412).

Owns options and output. Must not know the protocol: it uses Admin, and works with any Kafka. It changes the same levels
as `pybroker configs --entity-type broker-loggers`: those of one process, until that process ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.cli.kafka_exceptions import java_text
from pybroker.client.administration.topics import BROKER_LOGGER, DELETE, SET, ConfigChange
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse

    from pybroker.client.administration.admin import Admin

DESCRIPTION = (
    "Print and change the log levels of running brokers. A level applies to a logger and its descendants, until the "
    "broker stops."
)
JSON = {"": [{"broker": "integer", "loggers": {"<logger>": "string"}}]}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_cluster_options(parser)
    parser.add_argument("--broker", type=int, metavar="ID", help="the broker (default: all brokers)")
    parser.add_argument(
        "--unset",
        action="append",
        default=[],
        metavar="LOGGER",
        help="remove the level of a logger, which then inherits it",
    )
    parser.add_argument(
        "loggers",
        nargs="*",
        metavar="LOGGER[=LEVEL]",
        help="loggers to print, or to set to FATAL, ERROR, WARN, INFO, DEBUG or TRACE (default: print all)",
    )
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Change the given levels, print the levels, and return 0."""
    changes = [ConfigChange(name, None, DELETE) for name in arguments.unset]
    shown = list(arguments.unset)
    for text in arguments.loggers:
        name, sign, level = text.partition("=")
        shown.append(name)
        if sign:
            changes.append(ConfigChange(name, level.upper(), SET))
    try:
        with open_admin(arguments) as admin:
            brokers = _brokers(admin, arguments.broker)
            for broker in brokers if changes else ():
                admin.alter_configs(str(broker), changes, BROKER_LOGGER)
            levels = {broker: _levels(admin, broker, shown) for broker in brokers}
    except ClientError as error:
        raise CommandError(java_text(error)) from None
    except ConfigError as error:
        raise CommandError(str(error)) from None
    if arguments.json:
        print_json([{"broker": broker, "loggers": of_broker} for broker, of_broker in levels.items()])
        return 0
    width = max((len(name) for of_broker in levels.values() for name in of_broker), default=0)
    for broker, of_broker in levels.items():
        for name, level in of_broker.items():
            print(f"{f'{broker}  ' if len(levels) > 1 else ''}{name:<{width}}  {level}")
    return 0


def _brokers(admin: Admin, broker: int | None) -> list[int]:
    if broker is not None:
        return [broker]
    return sorted(one.node_id for one in admin.describe_cluster().brokers)


def _levels(admin: Admin, broker: int, shown: list[str]) -> dict[str, str]:
    """Return the levels of a broker's loggers, or of the selected ones. Raises CommandError."""
    every = {name: entry.value or "" for name, entry in admin.describe_configs(str(broker), BROKER_LOGGER).items()}
    missing = [name for name in shown if name not in every]
    if missing:
        raise CommandError(f"broker {broker} has no logger {missing[0]}; it has {', '.join(every)}")
    return {name: every[name] for name in shown or every}
