"""`pybroker acls`: access control entries added, removed and listed, with kafka-acls' options and output.

Owns the output, which is that of Kafka 4.3's tool, in a fixed order where the tool's changes with every run. Must not
know the protocol: it uses Admin, and works with any Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_node_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json, refuse_json
from pybroker.cli.option_rules import refuse_with
from pybroker.client.administration.acl_admin import Acl, AclFilter, AclPattern
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError
from pybroker.security.operations import (
    ALL,
    ANY,
    CLUSTER_NAME,
    OPERATION_NAMES,
    OPERATIONS,
    PATTERN_NAMES,
    PERMISSION_NAMES,
    RESOURCE_NAMES,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from pybroker.client.administration.admin import Admin

DESCRIPTION = "Add, remove and list access control entries. Options and output are those of kafka-acls."

_RESOURCES = (
    ("--topic", "topic", ResourceType.TOPIC),
    ("--group", "group", ResourceType.GROUP),
    ("--transactional-id", "transactional_id", ResourceType.TRANSACTIONAL_ID),
    ("--delegation-token", "delegation_token", ResourceType.DELEGATION_TOKEN),
    ("--user-principal", "user_principal", ResourceType.USER),
)
_PATTERNS = {"any": ANY, **{pattern.name.lower(): pattern.value for pattern in PatternType}}
_OPERATIONS = {name.replace("_", "").lower(): number for number, name in OPERATION_NAMES.items() if number > ANY}

JSON = {
    "--list": [
        {
            "resourceType": "string",
            "name": "string",
            "patternType": "string",
            "principal": "string",
            "host": "string",
            "operation": "string",
            "permission": "string",
        }
    ]
}
_Entry = tuple[str, str, int, int]
"""Principal, host, operation, permission."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_node_options(parser)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--add", action="store_true", help="add entries")
    action.add_argument("--remove", action="store_true", help="remove entries")
    action.add_argument("--list", action="store_true", help="list entries of the named resources, or all entries")
    for option, _, kind in _RESOURCES:
        parser.add_argument(
            option, action="append", default=[], metavar="NAME", help=f"a {kind.name} resource; * for all"
        )
    parser.add_argument("--cluster", action="store_true", help="the CLUSTER resource")
    parser.add_argument(
        "--resource-pattern-type",
        type=str.lower,
        choices=sorted(_PATTERNS),
        default="literal",
        help="pattern type of resource names (%(default)s)",
    )
    for verb in ("allow", "deny"):
        parser.add_argument(
            f"--{verb}-principal", action="append", default=[], metavar="User:NAME", help=f"principal to {verb}"
        )
        parser.add_argument(f"--{verb}-host", action="append", default=[], metavar="HOST", help=f"host to {verb} (*)")
    parser.add_argument(
        "--principal",
        nargs="?",
        action="append",
        default=[],
        metavar="User:NAME",
        help="with --list: only entries of these principals",
    )
    parser.add_argument(
        "--operation", action="append", default=[], metavar="OPERATION", help="operation to allow or deny (All)"
    )
    parser.add_argument(
        "--producer", action="store_true", help="add or remove the entries that a producer to --topic needs"
    )
    parser.add_argument(
        "--consumer", action="store_true", help="add or remove the entries that a consumer of --topic in --group needs"
    )
    parser.add_argument("--idempotent", action="store_true", help="with --producer: also IDEMPOTENT_WRITE")
    parser.add_argument("--force", action="store_true", help="skip the confirmation")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Add, remove or list entries, and return 0."""
    if not arguments.list:
        refuse_json(arguments, "--list")
    _check_options(arguments)
    # As in Kafka's tool, the option without a principal counts as absent.
    arguments.principal = [one for one in arguments.principal if one is not None]
    try:
        with open_admin(arguments) as admin:
            if arguments.list:
                _list(admin, arguments)
            elif arguments.add:
                _add(admin, arguments)
            else:
                _remove(admin, arguments)
    except (ClientError, ConfigError) as error:
        raise CommandError(f"Error while executing ACL command: {error}") from None
    return 0


def _check_options(arguments: argparse.Namespace) -> None:
    """Reject options that exclude each other, as `AclCommandOptions` of Kafka's tool. Raises CommandError."""
    refuse_with(
        arguments, "list", "producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal"
    )
    for role in ("producer", "consumer"):
        refuse_with(arguments, role, "operation", "deny-principal", "deny-host")
    if arguments.principal and not arguments.list:
        raise CommandError("The --principal option is only available if --list is set")
    if arguments.producer and not arguments.topic:
        raise CommandError("With --producer you must specify a --topic")
    if arguments.idempotent and not arguments.producer:
        raise CommandError("The --idempotent option is only available if --producer is set")
    # A producer may be combined with --cluster and --transactional-id, and with a consumer.
    beyond = not arguments.producer and (arguments.cluster or arguments.transactional_id)
    if arguments.consumer and (not arguments.topic or not arguments.group or beyond):
        raise CommandError(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified."
        )


def _add(admin: Admin, arguments: argparse.Namespace) -> None:
    if _PATTERNS[arguments.resource_pattern_type] not in (PatternType.LITERAL, PatternType.PREFIXED):
        words = arguments.resource_pattern_type.upper()
        raise CommandError(f"A '--resource-pattern-type' value of '{words}' is not valid when adding acls.")
    wanted = _entries(arguments)
    if not all(wanted.values()):
        raise CommandError("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    for pattern, entries in wanted.items():
        existing = set(admin.describe_acls(AclFilter.of(pattern)))
        fresh = []
        for entry in sorted(entries):
            acl = Acl(pattern, *entry)
            if acl in existing:
                print(f"Acl (pattern={_pattern(pattern)}, entry={_entry(entry)}) already exists.")
            else:
                fresh.append(acl)
        if fresh:
            print(f"Adding ACLs for resource `{_pattern(pattern)}`: \n {_lines(acl.entry for acl in fresh)}\n")
            admin.create_acls(fresh)


def _remove(admin: Admin, arguments: argparse.Namespace) -> None:
    for pattern, entries in _entries(arguments).items():
        if not entries:
            question = f"Are you sure you want to delete all ACLs for resource filter `{_pattern(pattern)}`? (y/n)"
            filters = [AclFilter.of(pattern)]
        else:
            question = (
                f"Are you sure you want to remove ACLs: \n {_lines(sorted(entries))}\n"
                f" from resource filter `{_pattern(pattern)}`? (y/n)"
            )
            filters = [_filter(pattern, entry) for entry in sorted(entries)]
        if arguments.force or _confirms(question):
            admin.delete_acls(filters)


def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    filters = [AclFilter.of(pattern) for pattern in _patterns(arguments)] or [AclFilter()]
    found = {acl: None for one in filters for acl in admin.describe_acls(one)}
    if arguments.json:
        wanted = [acl for acl in found if not arguments.principal or acl.principal in arguments.principal]
        print_json([_as_json(acl) for acl in sorted(wanted, key=lambda acl: (acl.pattern, acl.entry))])
        return
    if not arguments.principal:
        _print(found)
    for principal in dict.fromkeys(arguments.principal):
        print(f"ACLs for principal `{_principal(principal)}`")
        _print(acl for acl in found if acl.principal == principal)


def _as_json(acl: Acl) -> dict[str, str]:
    return {
        "resourceType": RESOURCE_NAMES.get(acl.pattern.resource_type, "UNKNOWN"),
        "name": acl.pattern.name,
        "patternType": PATTERN_NAMES.get(acl.pattern.pattern_type, "UNKNOWN"),
        "principal": acl.principal,
        "host": acl.host,
        "operation": OPERATION_NAMES.get(acl.operation, "UNKNOWN"),
        "permission": PERMISSION_NAMES.get(acl.permission, "UNKNOWN"),
    }


def _filter(pattern: AclPattern, entry: _Entry) -> AclFilter:
    principal, host, operation, permission = entry
    kind, name, how = pattern.resource_type, pattern.name, pattern.pattern_type
    return AclFilter(kind, name, how, principal, host, operation, permission)


def _print(acls: Iterable[Acl]) -> None:
    by_pattern: dict[AclPattern, list[_Entry]] = {}
    for acl in acls:
        by_pattern.setdefault(acl.pattern, []).append(acl.entry)
    for pattern in sorted(by_pattern):
        print(f"Current ACLs for resource `{_pattern(pattern)}`:\n{_lines(sorted(by_pattern[pattern]))}\n")


def _patterns(arguments: argparse.Namespace) -> list[AclPattern]:
    kind_of_pattern = _PATTERNS[arguments.resource_pattern_type]
    patterns = [
        AclPattern(kind, name.strip(), kind_of_pattern)
        for _, attribute, kind in _RESOURCES
        for name in dict.fromkeys(getattr(arguments, attribute))
    ]
    if arguments.cluster:
        patterns.append(AclPattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    return patterns


def _entries(arguments: argparse.Namespace) -> dict[AclPattern, set[_Entry]]:
    """Return the entries of the options, by resource pattern. Raises CommandError."""
    patterns = _patterns(arguments)
    _check_resources(arguments, patterns)
    wanted: dict[AclPattern, set[_Entry]] = {}
    if not arguments.producer and not arguments.consumer:
        operations = [_operation(text) for text in arguments.operation] or [ALL]
        for pattern in patterns:
            _check_operations(pattern, operations)
            wanted[pattern] = _of(arguments, operations)
        return wanted
    needs: list[tuple[ResourceType, tuple[Operation, ...]]] = []
    if arguments.producer:
        needs.append((ResourceType.TOPIC, (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE)))
        needs.append((ResourceType.TRANSACTIONAL_ID, (Operation.WRITE, Operation.DESCRIBE)))
    if arguments.consumer:
        needs.append((ResourceType.TOPIC, (Operation.READ, Operation.DESCRIBE)))
        needs.append((ResourceType.GROUP, (Operation.READ,)))
    for kind, some in needs:
        for pattern in patterns:
            if pattern.resource_type == kind:
                wanted.setdefault(pattern, set()).update(_of(arguments, some))
    if arguments.producer and arguments.idempotent:
        cluster = AclPattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
        wanted[cluster] = _of(arguments, (Operation.IDEMPOTENT_WRITE,))
    return wanted


def _check_resources(arguments: argparse.Namespace, patterns: list[AclPattern]) -> None:
    # The cluster has a literal name: with another pattern type Kafka's tool does not count it as a resource.
    is_literal = _PATTERNS[arguments.resource_pattern_type] == PatternType.LITERAL
    if not any(is_literal or pattern.resource_type != ResourceType.CLUSTER for pattern in patterns):
        names = "--topic <topic> or --cluster or --group <group> or --delegation-token <Delegation Token ID>"
        raise CommandError(f"You must provide at least one resource: {names}")


def _of(arguments: argparse.Namespace, operations: Iterable[int]) -> set[_Entry]:
    sides = (
        (arguments.allow_principal, arguments.allow_host, Permission.ALLOW),
        (arguments.deny_principal, arguments.deny_host, Permission.DENY),
    )
    return {
        (_principal(principal), host, operation, permission)
        for principals, hosts, permission in sides
        for principal in principals
        for host in hosts or ["*"]
        for operation in operations
    }


def _principal(text: str) -> str:
    kind, colon, name = text.strip().partition(":")
    if not (kind and colon and name):
        raise CommandError(f"expected a string in format principalType:principalName but got {text}")
    return text.strip()


def _operation(text: str) -> int:
    number = _OPERATIONS.get(text.replace("_", "").lower())
    if number is None:
        names = ", ".join(name for operation, name in OPERATION_NAMES.items() if operation > ANY)
        raise CommandError(f"--operation {text}: expected one of {names}")
    return number


def _check_operations(pattern: AclPattern, operations: list[int]) -> None:
    supported = (ALL, *OPERATIONS[ResourceType(pattern.resource_type)])
    if any(operation not in supported for operation in operations):
        names = ", ".join(OPERATION_NAMES[operation] for operation in supported)
        raise CommandError(f"ResourceType {RESOURCE_NAMES[pattern.resource_type]} only supports operations {names}")


def _pattern(pattern: AclPattern) -> str:
    kind, how = RESOURCE_NAMES.get(pattern.resource_type, "UNKNOWN"), PATTERN_NAMES.get(pattern.pattern_type, "UNKNOWN")
    return f"ResourcePattern(resourceType={kind}, name={pattern.name}, patternType={how})"


def _entry(entry: _Entry) -> str:
    principal, host, operation, permission = entry
    what, how = OPERATION_NAMES.get(operation, "UNKNOWN"), PERMISSION_NAMES.get(permission, "UNKNOWN")
    return f"(principal={principal}, host={host}, operation={what}, permissionType={how})"


def _lines(entries: Iterable[_Entry]) -> str:
    return "\n".join(f"\t{_entry(entry)}" for entry in entries)


def _confirms(question: str) -> bool:
    print(question)
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False
