"""`pybroker configs`: show and change settings of topics, brokers, groups and client metrics, as kafka-configs does.

Owns option names, the form of `--add-config`, and the output, which are those of Kafka 4.3's tool. Must not know the
protocol: it uses Admin, and works with any Kafka.

Of users it changes SCRAM passwords (`pybroker.cli.scram_options`) and, as of clients and addresses, quotas
(`pybroker.cli.quota_options`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.cluster_access import add_node_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json, refuse_json
from pybroker.cli.kafka_exceptions import java_text
from pybroker.cli.quota_options import (
    CLIENTS,
    IPS,
    QUOTA_TYPES,
    USERS,
    QuotaOwner,
    alter_quotas,
    check_owner,
    describe_quotas,
    is_of_quotas,
    quota_documents,
)
from pybroker.cli.scram_options import parse_credential
from pybroker.client.administration.topics import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    TOPIC,
    ConfigChange,
    ConfigEntry,
)
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError
from pybroker.config.properties import read_properties

if TYPE_CHECKING:
    import argparse

    from pybroker.client.administration.admin import Admin

DESCRIPTION = (
    "Show and change the settings of topics, brokers, groups and client metrics, and the quotas of users, clients and "
    "addresses. "
    "Options and output are those of kafka-configs."
)

JSON = {
    "--describe": [
        {
            "entityType": "string",
            "entityName": "string",
            "configs": [
                {
                    "name": "string",
                    "value": "string|null",
                    "source": "string",
                    "sensitive": "boolean",
                    "readOnly": "boolean",
                    "synonyms": [{"name": "string", "value": "string|null", "source": "string"}],
                }
            ],
        }
    ],
    "--describe of users, clients and ips": [{"entity": {"<type>": "string|null"}, "quotas": {"<key>": "number"}}],
}
_TYPES = {
    "topics": TOPIC,
    "brokers": BROKER,
    "broker-loggers": BROKER_LOGGER,
    "groups": GROUP,
    "client-metrics": CLIENT_METRICS,
}
_LOGGERS = "broker-loggers"
_SHORT = {
    "topic": "topics",
    "client": CLIENTS,
    "user": USERS,
    "broker": "brokers",
    "group": "groups",
    "ip": IPS,
    "client_metrics": "client-metrics",
}
_DEFAULTS = {"client_defaults": CLIENTS, "user_defaults": USERS, "broker_defaults": "brokers", "ip_defaults": IPS}
_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
_OWN_BROKER, _ALL_BROKERS = 2, 3
_OWN = {TOPIC: 1, BROKER_LOGGER: 6, CLIENT_METRICS: 7, GROUP: 8}
# A comma or an equals sign between brackets belongs to the value.
_OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"
_KEY = re.compile(r"[$a-zA-Z0-9._-]*")


class _Entity(NamedTuple):
    """The resource of an action: `name` is None for all of a type, empty for the cluster-wide default of brokers."""

    type: str
    name: str | None

    @property
    def resource_type(self) -> int:
        return _TYPES[self.type]

    @property
    def own_source(self) -> int:
        if self.resource_type != BROKER:
            return _OWN[self.resource_type]
        return _OWN_BROKER if self.name else _ALL_BROKERS

    @property
    def noun(self) -> str:
        return self.type.removesuffix("s")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_node_options(parser)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--describe", action="store_true", help="describe settings that differ from the defaults")
    action.add_argument("--alter", action="store_true", help="change settings")
    parser.add_argument("--all", action="store_true", help="with --describe: all settings, with their sources")
    parser.add_argument(
        "--entity-type",
        action="append",
        default=[],
        metavar="TYPE",
        help="topics, brokers, broker-loggers, groups, client-metrics, users, clients or ips; users and clients "
        "together, each named",
    )
    parser.add_argument(
        "--entity-name",
        action="append",
        dest="entity_names",
        default=[],
        metavar="NAME",
        help="a topic's, group's or user's name, a client id, an address, or a broker's id",
    )
    parser.add_argument(
        "--entity-default",
        action="append_const",
        dest="entity_names",
        const="",
        help="in place of a name: the default of all brokers, users, clients or addresses",
    )
    parser.add_argument("--topic", metavar="TOPIC", help="short for --entity-type topics --entity-name TOPIC")
    parser.add_argument("--broker", metavar="ID", help="short for --entity-type brokers --entity-name ID")
    parser.add_argument("--group", metavar="GROUP", help="short for --entity-type groups --entity-name GROUP")
    parser.add_argument("--user", metavar="USER", help="short for --entity-type users --entity-name USER")
    parser.add_argument("--client", metavar="ID", help="short for --entity-type clients --entity-name ID")
    parser.add_argument("--ip", metavar="ADDRESS", help="short for --entity-type ips --entity-name ADDRESS")
    parser.add_argument(
        "--client-metrics", metavar="NAME", help="short for --entity-type client-metrics --entity-name NAME"
    )
    parser.add_argument("--broker-defaults", action="store_true", help="the default of all brokers")
    parser.add_argument("--user-defaults", action="store_true", help="the default of all users")
    parser.add_argument("--client-defaults", action="store_true", help="the default of all clients")
    parser.add_argument("--ip-defaults", action="store_true", help="the default of all addresses")
    parser.add_argument(
        "--add-config", metavar="K=V,...", help="settings to add or change; brackets group a value: k=[a,b]"
    )
    parser.add_argument(
        "--add-config-file", type=Path, metavar="FILE", help="a properties file with settings to add or change"
    )
    parser.add_argument("--delete-config", metavar="K,...", help="settings to remove")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Execute the action and return 0."""
    if arguments.alter:
        refuse_json(arguments, "--describe")
    owner = _owner(arguments)
    entity = _Entity(owner.types[0], owner.names[0] if owner.names else None)
    _check(entity, owner, arguments)
    try:
        with open_admin(arguments) as admin:
            if entity.type in QUOTA_TYPES:
                _run_quotas(admin, owner, arguments)
            elif arguments.alter:
                _alter(admin, entity, _changes(arguments))
            else:
                _describe(admin, entity, arguments)
    except ClientError as error:
        raise CommandError(f"Error while executing config command: {java_text(error)}") from None
    except ConfigError as error:
        raise CommandError(f"Error while executing config command: {error}") from None
    return 0


def _owner(arguments: argparse.Namespace) -> QuotaOwner:
    """Return the types and names of the command, in Kafka's order: single options in that of `_SHORT`."""
    short = [(_SHORT[name], getattr(arguments, name)) for name in _SHORT if getattr(arguments, name) is not None]
    short += [(kind, "") for name, kind in _DEFAULTS.items() if getattr(arguments, name)]
    if short and (arguments.entity_type or arguments.entity_names):
        raise CommandError("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    types = arguments.entity_type or [kind for kind, _ in short]
    if not types:
        raise CommandError("At least one entity type must be specified")
    repeated = dict.fromkeys(kind for place, kind in enumerate(types) if kind in types[:place])
    if repeated:
        raise CommandError(f"Duplicate entity type(s) specified: {','.join(repeated)}")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise CommandError("Only 'users' and 'clients' entity types may be specified together")
    return QuotaOwner(tuple(types), tuple(arguments.entity_names) or tuple(name for _, name in short))


def _check(entity: _Entity, owner: QuotaOwner, arguments: argparse.Namespace) -> None:
    if entity.type not in (*_TYPES, *QUOTA_TYPES):
        raise CommandError(
            f"Invalid entity type {entity.type}, the entity type must be one of "
            f"{', '.join((*_TYPES, *QUOTA_TYPES))} with a --bootstrap-server or --bootstrap-controller "
            "argument"
        )
    if entity.type in ("brokers", _LOGGERS) and entity.name and not entity.name.removeprefix("-").isdecimal():
        raise CommandError(
            f"The entity name for {entity.type} must be a valid integer broker id, but it is: {entity.name}"
        )
    has_default = entity.type == "brokers" or entity.type in QUOTA_TYPES
    if arguments.describe:
        if not has_default and "" in owner.names:
            raise CommandError(f"--entity-default must not be specified with --describe of {entity.type}")
        if entity.type == _LOGGERS and not entity.name:
            raise CommandError(f"An entity name must be specified with --describe of {entity.type}")
        if arguments.add_config or arguments.add_config_file or arguments.delete_config:
            raise CommandError("--describe cannot be used with --add-config, --add-config-file or --delete-config", 2)
    elif not has_default and not entity.name:
        raise CommandError(f"An entity name must be specified with --alter of {entity.type}")
    elif entity.name is None:
        raise CommandError(
            "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
        )
    if entity.type in QUOTA_TYPES:
        check_owner(owner, alters=arguments.alter)
    elif len(owner.names) > 1:
        raise CommandError(f"{', '.join(owner.names)}: expected one name with --entity-type {entity.type}")


def _run_quotas(admin: Admin, owner: QuotaOwner, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json(quota_documents(admin, owner))
        return
    if not arguments.alter:
        describe_quotas(admin, owner)
        if owner.types == (USERS,) and "" not in owner.names:
            _describe_passwords(admin, owner.names)
        return
    changes = _changes(arguments)
    if is_of_quotas(owner, changes):
        alter_quotas(admin, owner, changes)
    else:
        _alter_passwords(admin, owner.names[0], changes)
    _report_altered(owner.types[0], owner.names[0])


def _describe_passwords(admin: Admin, users: tuple[str, ...]) -> None:
    for user, mechanisms in sorted(admin.describe_scram_users(users or None).items()):
        shown = ", ".join(f"{mechanism}=iterations={count}" for mechanism, count in mechanisms.items())
        print(f"SCRAM credential configs for user-principal '{user}' are {shown}")


def _alter_passwords(admin: Admin, user: str, changes: list[ConfigChange]) -> None:
    for change in changes:
        if change.operation == DELETE:
            admin.alter_scram_user(user, take_away=change.name)
        else:
            admin.alter_scram_user(user, give=parse_credential(change.name, change.value or ""))


def _changes(arguments: argparse.Namespace) -> list[ConfigChange]:
    if arguments.add_config is not None and arguments.add_config_file is not None:
        raise CommandError("Only one of --add-config or --add-config-file must be specified")
    if arguments.add_config is None and arguments.add_config_file is None and arguments.delete_config is None:
        raise CommandError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    deleted = [name.strip() for name in (arguments.delete_config or "").split(",") if name.strip()]
    added = read_properties(arguments.add_config_file) if arguments.add_config_file is not None else {}
    if arguments.add_config is not None:
        added = parse_added(arguments.add_config)
    return [ConfigChange(name, "", DELETE) for name in deleted] + [
        ConfigChange(name, value, SET) for name, value in added.items()
    ]


def parse_added(text: str) -> dict[str, str]:
    """Parse `k1=v1,k2=[v1,v2]`. Raises CommandError with the message of Kafka's tool."""
    added = {}
    for part in re.split("," + _OUTSIDE_BRACKETS, text):
        pair = re.split(r"\s*=\s*" + _OUTSIDE_BRACKETS, part)
        if len(pair) != 2:
            raise CommandError(
                'Invalid entity config: all configs to be added must be in the format "key=val" or  '
                '"key=[val1,val2]" to group values which contain commas.'
            )
        name, value = pair[0].strip(), re.sub(r"\[?\]?", "", pair[1]).strip()
        if not _KEY.fullmatch(name):
            raise CommandError(f"Invalid character found for config key: {name}")
        added[name] = value
    return added


def _alter(admin: Admin, entity: _Entity, changes: list[ConfigChange]) -> None:
    name = entity.name or ""
    if entity.type == _LOGGERS:
        known = admin.describe_configs(name, BROKER_LOGGER)
        unknown = [change.name for change in changes if change.name not in known]
        if unknown:
            raise CommandError(f"Error while executing config command: Invalid broker logger(s): {','.join(unknown)}")
    admin.alter_configs(name, changes, entity.resource_type)
    _report_altered(entity.type, name)


def _report_altered(kind: str, name: str) -> None:
    if name:
        print(f"Completed updating config for {kind.removesuffix('s')} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _describe(admin: Admin, entity: _Entity, arguments: argparse.Namespace) -> None:
    every, known = arguments.all, _names(admin, entity.type)
    if arguments.json:
        names = (
            known if entity.name is None else [name for name in (entity.name,) if every or not name or name in known]
        )
        print_json([_as_json(name, _shown(admin, _Entity(entity.type, name), every=every), entity) for name in names])
        return
    if not every and entity.name and entity.name not in known:
        print(f"The {entity.noun} '{entity.name}' doesn't exist and doesn't have dynamic config.")
        return
    for name in known if entity.name is None else [entity.name]:
        if name:
            print(f"{'All' if every else 'Dynamic'} configs for {entity.noun} {name} are:")
        else:
            print(f"Default configs for {entity.type} in the cluster are:")
        for entry in _shown(admin, _Entity(entity.type, name), every=every).values():
            print(f"  {_line(entry)}")


def _as_json(name: str, entries: dict[str, ConfigEntry], entity: _Entity) -> dict[str, object]:
    configs = [
        {
            "name": entry.name,
            "value": entry.value,
            "source": _SOURCES.get(entry.source, "UNKNOWN"),
            "sensitive": entry.is_sensitive,
            "readOnly": entry.read_only,
            "synonyms": [
                {"name": one.name, "value": one.value, "source": _SOURCES.get(one.source, "UNKNOWN")}
                for one in entry.synonyms
            ],
        }
        for entry in entries.values()
    ]
    return {"entityType": entity.type, "entityName": name, "configs": configs}


def _names(admin: Admin, entity_type: str) -> list[str]:
    """Return the names of a type; for brokers the cluster-wide default is last.

    Topics, groups and client metrics are sorted by name; Kafka's tool uses the order of Java's hash table.
    """
    if entity_type == "topics":
        return admin.list_topics(internal=True)
    if entity_type == "client-metrics":
        return sorted(admin.list_config_resources(CLIENT_METRICS))
    if entity_type == "groups":
        there = {group.group_id for group in admin.list_groups()}
        return sorted(there.union(admin.list_config_resources(GROUP)))
    brokers = [str(broker.node_id) for broker in admin.describe_cluster().brokers]
    return brokers if entity_type == _LOGGERS else [*brokers, ""]


def _shown(admin: Admin, entity: _Entity, *, every: bool) -> dict[str, ConfigEntry]:
    entries = admin.describe_configs(entity.name or "", entity.resource_type, synonyms=True)
    shown = sorted(entries.values(), key=lambda entry: entry.name)
    return {entry.name: entry for entry in shown if every or entry.source == entity.own_source}


def _line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(
        f"{_SOURCES.get(synonym.source, 'UNKNOWN')}:{synonym.name}={_text(synonym.value)}" for synonym in entry.synonyms
    )
    sensitive = "true" if entry.is_sensitive else "false"
    return f"{entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _text(value: str | None) -> str:
    return "null" if value is None else value
