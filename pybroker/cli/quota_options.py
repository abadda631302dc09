"""Client quotas as options of `pybroker configs`: whom a limit binds, what is changed, how it is shown.

Owns the messages of Kafka's ConfigCommand for users, clients and addresses. Must not know the protocol: it uses Admin.
"""

from __future__ import annotations

import socket
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.client.administration.quota_admin import ANY_NAME
from pybroker.client.administration.topics import DELETE
from pybroker.security.scram_mechanisms import SCRAM_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.client.administration.admin import Admin
    from pybroker.client.administration.quota_admin import NameFilter, QuotaEntity
    from pybroker.client.administration.topics import ConfigChange

USERS, CLIENTS, IPS = "users", "clients", "ips"
QUOTA_TYPES = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
"""Entity types of quotas, by the command's words."""
_SHOWN = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_CLIENT_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_IP_KEYS = ("connection_creation_rate",)
_LEAST_PLAIN, _MOST_PLAIN = 1e-3, 1e7


class QuotaOwner(NamedTuple):
    """The entities of a command: types in its order, and at most as many names; an empty name is the default."""

    types: tuple[str, ...]
    names: tuple[str, ...]

    def entity(self) -> dict[str, str | None]:
        """Return the entity to alter."""
        return {QUOTA_TYPES[kind]: name or None for kind, name in zip(self.types, self.names, strict=True)}

    def components(self) -> dict[str, NameFilter]:
        """Return the filter of entities to describe: a type without a name matches all of it."""
        names: list[NameFilter] = [name or None for name in self.names]
        names += [ANY_NAME] * (len(self.types) - len(names))
        return {QUOTA_TYPES[kind]: name for kind, name in zip(self.types, names, strict=True)}


def check_owner(owner: QuotaOwner, *, alters: bool) -> None:
    """Reject an entity that cannot have a quota. Raises CommandError."""
    if alters and not owner.names:
        raise CommandError(
            "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
        )
    if alters and len(owner.names) != len(owner.types):
        raise CommandError("An entity name must be specified for every entity type")
    if len(owner.names) > len(owner.types):
        raise CommandError("More entity names specified than entity types")
    if IPS in owner.types:
        for name in filter(None, owner.names):
            _check_address(name)


def _check_address(name: str) -> None:
    try:
        socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise CommandError(
            f"The entity name for ips must be a valid IP or resolvable host, but it is: {name}"
        ) from None


def is_of_quotas(owner: QuotaOwner, changes: Sequence[ConfigChange]) -> bool:
    """Whether the changes are quotas rather than SCRAM passwords. Raises CommandError for a mixture."""
    names = [change.name for change in changes]
    if IPS in owner.types:
        wrong = [one for one in names if one not in _IP_KEYS]
        _refuse("Only connection quota configs can be added for 'ips'", wrong, shown=",".join(wrong))
        return True
    of_scram = [one for one in names if one in SCRAM_BY_NAME]
    if CLIENTS in owner.types:
        for verb, some in _by_verb(changes):
            wrong = [one for one in some if one not in _CLIENT_KEYS]
            _refuse(f"Only quota configs can be {verb} for 'clients'", wrong)
        return True
    for verb, some in _by_verb(changes):
        wrong = [one for one in some if one not in _CLIENT_KEYS and one not in SCRAM_BY_NAME]
        _refuse(f"Only quota and SCRAM credential configs can be {verb} for 'users'", wrong)
    if of_scram and "" in owner.names:
        raise CommandError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using "
            "--bootstrap-server."
        )
    if of_scram and len(of_scram) < len(names):
        raise CommandError(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using --bootstrap-server."
        )
    return not of_scram


def _by_verb(changes: Sequence[ConfigChange]) -> list[tuple[str, list[str]]]:
    return [
        ("added", [one.name for one in changes if one.operation != DELETE]),
        ("deleted", [one.name for one in changes if one.operation == DELETE]),
    ]


def _refuse(words: str, names: Sequence[str], shown: str | None = None) -> None:
    if names:
        shown = shown or f"Set({', '.join(names)})"
        raise CommandError(f"{words} using --bootstrap-server. Unexpected config names: {shown}")


def alter_quotas(admin: Admin, owner: QuotaOwner, changes: Sequence[ConfigChange]) -> None:
    """Alter quotas. Raises CommandError for an invalid number, and for the deletion of a quota that is not set."""
    there = next(iter(admin.describe_client_quotas(owner.components(), strict=True).values()), {})
    missing = [change.name for change in changes if change.operation == DELETE and change.name not in there]
    if missing:
        raise CommandError(f"Invalid config(s): {','.join(missing)}")
    wanted = {change.name: None if change.operation == DELETE else _number(change) for change in changes}
    admin.alter_client_quotas(owner.entity(), wanted)


def _number(change: ConfigChange) -> float:
    try:
        return float(change.value or "")
    except ValueError:
        raise CommandError(f"Cannot parse quota configuration value for {change.name}: {change.value}") from None


def describe_quotas(admin: Admin, owner: QuotaOwner) -> None:
    """Print the quotas of entities with exactly the types of the command."""
    for entity, limits in sorted(admin.describe_client_quotas(owner.components(), strict=True).items(), key=_order):
        values = ", ".join(f"{key}={java_double(value)}" for key, value in sorted(limits.items()))
        print(f"Quota configs for {_entity_text(entity)} are {values}")


def quota_documents(admin: Admin, owner: QuotaOwner) -> list[dict[str, object]]:
    """Return the values of `describe_quotas` as JSON documents; an entity without a name is the default."""
    described = sorted(admin.describe_client_quotas(owner.components(), strict=True).items(), key=_order)
    return [{"entity": dict(entity), "quotas": dict(sorted(limits.items()))} for entity, limits in described]


def _order(described: tuple[QuotaEntity, Mapping[str, float]]) -> list[tuple[str, bool, str]]:
    return [(kind, name is None, name or "") for kind, name in described[0]]


def _entity_text(entity: QuotaEntity) -> str:
    names = dict(entity)
    shown = [(_SHOWN[kind], names[kind]) for kind in _SHOWN if kind in names]
    return ", ".join(f"the default {kind}" if name is None else f"{kind} '{name}'" for kind, name in shown)


def java_double(value: float) -> str:
    """Format a number as Java's `Double.toString`: with an exponent from ten million on, and below 0.001."""
    if value == 0 or _LEAST_PLAIN <= abs(value) < _MOST_PLAIN:
        return repr(float(value))
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    first, *others = map(str, digits)
    return f"{'-' if sign else ''}{first}.{''.join(others) or '0'}E{len(others) + int(exponent)}"
