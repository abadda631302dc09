"""SCRAM users as options of the commands: `SCRAM-SHA-256=[iterations=8192,password=x]`.

Owns both forms, that of `configs --add-config` and that of `format --add-scram`, with the messages of Kafka's
ConfigCommand and ScramParser. Must send no request, and write no password anywhere.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.client.administration.user_admin import ScramPassword, fresh_salt
from pybroker.protocol.messages.records.user_scram_credential import UserScramCredentialRecord
from pybroker.security.scram import salted_password, server_key, stored_key
from pybroker.security.scram_mechanisms import LEAST_ITERATIONS, MOST_ITERATIONS, SCRAM_BY_NAME

if TYPE_CHECKING:
    from pybroker.security.scram_mechanisms import ScramMechanism

_CREDENTIAL = re.compile(r"(?:iterations=(\d*),)?password=(.*)", re.DOTALL)


def parse_credential(mechanism: str, text: str) -> ScramPassword:
    """Parse `[iterations=N,]password=P`. Raises CommandError."""
    found = _CREDENTIAL.fullmatch(text)
    if found is None:
        raise CommandError(f"Invalid credential property {mechanism}=[hidden]")
    iterations = int(found[1]) if found[1] else LEAST_ITERATIONS
    if iterations < LEAST_ITERATIONS:
        raise CommandError(
            f"Iterations {iterations} is less than the minimum {LEAST_ITERATIONS} required for {mechanism}"
        )
    return ScramPassword(mechanism, found[2], iterations)


def parse_scram_user(text: str) -> UserScramCredentialRecord:
    """Parse `MECHANISM=[name=N,password=P,...]`. Raises CommandError."""
    name, sign, rest = text.strip().partition("=")
    if not sign:
        raise CommandError("Failed to find equals sign in SCRAM argument '[hidden]'")
    mechanism = SCRAM_BY_NAME.get(name)
    if mechanism is None:
        raise CommandError(f"The add-scram mechanism {name} is not supported.")
    for has, words in ((rest.startswith("["), "start with ["), (rest.endswith("]"), "end with ]")):
        if not has:
            raise CommandError(f"Expected configuration string to {words}")
    return _record(mechanism, dict(_part(part) for part in rest[1:-1].split(",")))


def _part(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise CommandError("No equals sign found in SCRAM component: [hidden]")
    if len(value) > 1 and value.startswith('"') and value.endswith('"'):
        value = value[1:-1]
    return name, value


def _record(mechanism: ScramMechanism, parts: dict[str, str]) -> UserScramCredentialRecord:
    user, given = parts.pop("name", None), parts.pop("iterations", None)
    password, salted, salt = parts.pop("password", None), parts.pop("saltedpassword", None), parts.pop("salt", None)
    if user is None:
        raise CommandError("You must supply 'name' to add-scram")
    if parts:
        raise CommandError(f"Unknown SCRAM configurations: {', '.join(sorted(parts))}")
    if password is None and salted is None:
        raise CommandError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and salt is None:
        raise CommandError("You must supply 'salt' with 'saltedpassword' to add-scram")
    iterations = _iterations(mechanism, given)
    random = fresh_salt() if salt is None else _decoded("salt", salt)
    if password is not None:
        hashed = salted_password(mechanism, password, random, iterations)
    else:
        hashed = _decoded("saltedPassword", salted or "")
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism.number,
        salt=random,
        stored_key=stored_key(mechanism, hashed),
        server_key=server_key(mechanism, hashed),
        iterations=iterations,
    )


def _iterations(mechanism: ScramMechanism, text: str | None) -> int:
    if text is None:
        return LEAST_ITERATIONS
    if not text.isdecimal():
        raise CommandError(f"Failed to parse iterations count: {text}")
    for is_wrong, bound in (
        (int(text) < LEAST_ITERATIONS, f">= {LEAST_ITERATIONS}"),
        (int(text) > MOST_ITERATIONS, f"<= {MOST_ITERATIONS}"),
    ):
        if is_wrong:
            raise CommandError(f"The 'iterations' value must be {bound} for add-scram using {mechanism.name}")
    return int(text)


def _decoded(what: str, text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise CommandError(f"Failed to decode given {what}: it is not base64") from None
