"""`pybroker client-metrics`: say which clients push which metrics, with the options and output of kafka-client-metrics.

Owns option names and lines, which are those of Kafka 4.3's tool. Works with any Kafka, by Admin only. Kafka has no
request for the pushed values: docs/guides/client-metrics.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json, refuse_json
from pybroker.cli.kafka_exceptions import java_words
from pybroker.client.administration.topics import CLIENT_METRICS, DELETE, SET, ConfigChange
from pybroker.client.errors import BrokerError, ClientError, SettingError
from pybroker.config.client_metrics import ATTRIBUTES
from pybroker.config.errors import ConfigError
from pybroker.storage.log_dirs.meta_properties import random_id

if TYPE_CHECKING:
    import argparse

    from pybroker.client.administration.admin import Admin

DESCRIPTION = (
    "Configure which metrics clients push to the brokers (KIP-714). "
    "Options and output are those of kafka-client-metrics."
)
JSON = {"--list": ["string"], "--describe": [{"name": "string", "configs": {"<config>": "string|null"}}]}
_ACTIONS = ("alter", "delete", "describe", "list")
_VALUES = {"interval": "interval.ms", "metrics": "metrics", "match": "match"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add_cluster_options(parser, required=False)
    add("--alter", action="store_true", help="create or change a subscription")
    add("--delete", action="store_true", help="delete a subscription")
    add("--describe", action="store_true", help="describe one subscription, or all")
    add("--list", action="store_true", help="list the subscriptions")
    add("--name", metavar="NAME", help="the subscription")
    add("--generate-name", action="store_true", help="generate the name, a UUID")
    add("--interval", metavar="MS", help="interval in ms at which a client pushes; empty for the default")
    add("--match", metavar="K1=V1,K2=V2", help=f"which clients: patterns for {', '.join(ATTRIBUTES)}; empty for all")
    add("--metrics", metavar="M1,M2", help="prefixes of metric names; * for all, empty for none")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Execute the action and return 0."""
    _check(arguments)
    try:
        with open_admin(arguments) as admin:
            if arguments.alter:
                _alter(admin, arguments)
            elif arguments.delete:
                _delete(admin, arguments.name)
            elif arguments.describe:
                _describe(admin, arguments)
            elif arguments.json:
                print_json(_names(admin))
            else:
                print("\n".join(_names(admin)))
    except ConfigError as error:
        raise CommandError(str(error), 2) from None
    except SettingError as error:
        raise CommandError(str(error)) from None
    except ClientError as error:
        # As Kafka's tool, which prints this on standard output.
        words = java_words(error) if isinstance(error, BrokerError) else str(error)
        if arguments.json:
            raise CommandError(words) from None
        print(f"Error while executing client metrics command : {words}")
        return 1
    return 0


def _check(arguments: argparse.Namespace) -> None:
    chosen = [action for action in _ACTIONS if getattr(arguments, action)]
    if len(chosen) != 1:
        raise CommandError("Command must include exactly one action: --alter, --delete, --describe or --list.")
    if arguments.bootstrap_server is None:
        raise CommandError("--bootstrap-server must be specified.")
    if arguments.alter or arguments.delete:
        refuse_json(arguments, "--list and --describe")
    for action in ("delete", "describe", "list"):
        others = ["generate_name", *_VALUES] if action != "list" else ["name", "generate_name", *_VALUES]
        for other in others if chosen == [action] else ():
            if getattr(arguments, other) not in (None, False):
                name = other.replace("_", "-")
                raise CommandError(f'Option "[{action}]" can\'t be used with option "[{name}]"')
    if arguments.alter and (arguments.name is not None) == arguments.generate_name:
        raise CommandError("One of --name or --generate-name must be specified with --alter.")
    if arguments.delete and arguments.name is None:
        raise CommandError("A client metrics resource name must be specified with --delete.")
    if arguments.interval is not None and not arguments.interval.removeprefix("-").isdecimal():
        raise CommandError(f"Cannot parse argument '{arguments.interval}' of option interval")


def _alter(admin: Admin, arguments: argparse.Namespace) -> None:
    name = random_id() if arguments.generate_name else arguments.name
    given = {key: getattr(arguments, option) for option, key in _VALUES.items()}
    changes = [ConfigChange(key, value, SET if value else DELETE) for key, value in given.items() if value is not None]
    admin.alter_configs(name, changes, CLIENT_METRICS)
    print(f"Altered client metrics config for {name}.")


def _delete(admin: Admin, name: str) -> None:
    changes = [ConfigChange(key, "", DELETE) for key in admin.describe_configs(name, CLIENT_METRICS)]
    admin.alter_configs(name, changes, CLIENT_METRICS)
    print(f"Deleted client metrics config for {name}.")


def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    document = []
    for one in _names(admin) if arguments.name is None else [arguments.name]:
        entries = admin.describe_configs(one, CLIENT_METRICS).values()
        if arguments.json:
            document.append({"name": one, "configs": {entry.name: entry.value for entry in entries}})
            continue
        print(f"Client metrics configs for {one} are:")
        for entry in entries:
            print(f"  {entry.name}={entry.value}")
    if arguments.json:
        print_json(document)


def _names(admin: Admin) -> list[str]:
    return sorted(admin.list_config_resources(CLIENT_METRICS))
