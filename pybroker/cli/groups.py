"""`pybroker groups`: list groups of all types, with the options and output of kafka-groups.

Owns option names and columns, which are those of Kafka 4.3's tool. Works with any Kafka, by Admin only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.cli.kafka_exceptions import java_text
from pybroker.client.administration.groups import GroupListing
from pybroker.client.errors import ClientError, SettingError
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "List groups of all types. Options and output are those of kafka-groups."
JSON = {"--list": [{"group": "string", "type": "string", "protocol": "string"}]}
_TYPES = ("classic", "consumer", "share", "streams")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add_cluster_options(parser, properties=True)
    add("--list", action="store_true", help="list the groups")
    add("--group-type", metavar="TYPE", help="only groups of this type: classic, consumer, share or streams")
    add("--protocol", metavar="PROTOCOL", help="only groups of this protocol type")
    for name, what in (
        ("consumer", "only consumer groups: of type consumer, and of type classic with protocol consumer or none"),
        ("share", "only share groups"),
        ("streams", "only streams groups"),
    ):
        add(f"--{name}", action="store_true", help=what)
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """List groups, and return 0."""
    _check(arguments)
    try:
        with open_admin(arguments) as admin:
            groups = [group for group in admin.list_groups() if _fits(group, arguments)]
    except ConfigError as error:
        raise CommandError(str(error), 2) from None
    except SettingError as error:
        raise CommandError(str(error)) from None
    except ClientError as error:
        raise CommandError(f"Error while executing groups command : {java_text(error)}") from None
    if arguments.json:
        print_json(
            [{"group": group.group_id, "type": group.type.lower(), "protocol": group.protocol_type} for group in groups]
        )
        return 0
    rows = [(group.group_id, group.type.capitalize(), group.protocol_type) for group in groups]
    width = max([20, *(len(text) for row in rows for text in row)])
    print(" ".join(f"{title:<{width}}" for title in ("GROUP", "TYPE", "PROTOCOL")))
    for row in rows:
        print("".join(f"{text:<{width}} " for text in row))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if not arguments.list:
        raise CommandError("Command must include exactly one action: --list.")
    if arguments.group_type is not None and arguments.group_type.lower() not in _TYPES:
        raise CommandError("--group-type must be a valid group type.")
    for kind in ("consumer", "share", "streams"):
        for other in ("consumer", "group_type", "protocol", "share", "streams"):
            if getattr(arguments, kind) and other != kind and getattr(arguments, other):
                name = other.replace("_", "-")
                raise CommandError(f'Option "[{kind}]" can\'t be used with option "[{name}]"')


def _fits(group: GroupListing, arguments: argparse.Namespace) -> bool:
    kind = group.type.lower()
    if arguments.group_type is not None and kind != arguments.group_type.lower():
        return False
    if arguments.protocol is not None and group.protocol_type != arguments.protocol:
        return False
    if arguments.consumer:
        return group.protocol_type in ("consumer", "") or kind == "consumer"
    return not (arguments.share and kind != "share") and not (arguments.streams and kind != "streams")
