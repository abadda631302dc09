"""A listener's Kerberos settings (GSSAPI): its key table and principal, and the rules that map principals to users.

Owns the supported options of Java's Krb5LoginModule, the syntax of `sasl.kerberos.principal.to.local.rules`, and the
rejection of a listener whose package is not installed. Must not know tokens, or apply a rule.

Source: Kafka's KerberosLogin and KerberosShortNamer.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING

import msgspec
import re2

from pybroker.config.errors import ConfigError
from pybroker.config.extras import install_command
from pybroker.config.key import parse_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pybroker.config.security.oauth import Texts

GSSAPI = "GSSAPI"
SERVICE = "sasl.kerberos.service.name"
RULES = "sasl.kerberos.principal.to.local.rules"
_LACKING = (
    f"the Kerberos package ({install_command('gssapi')}), or another mechanism, as in "
    "sasl.enabled.mechanisms=SCRAM-SHA-512"
)
_JAAS_EXAMPLE = (
    "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
    'keyTab="/etc/kafka.keytab" principal="kafka/host@REALM";'
)
_RULE = re.compile(
    r"(?P<default>DEFAULT)|RULE:\[(?P<parts>\d+):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<new>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_REFERENCE = re.compile(r"\$(\d*)")


class LocalRule(msgspec.Struct, frozen=True):
    """A rule that maps a Kerberos principal to a user. A rule without `format` is DEFAULT."""

    text: str
    """The text of the rule."""
    format: str | None = None
    """The format, with `$0` for the realm, `$1` and `$2` for the components before it."""
    parts: int = 0
    """The number of components before the realm for which the rule applies."""
    match: str | None = None
    """An RE2 pattern that must match the whole formatted name; None: matches all."""
    pattern: str | None = None
    """An RE2 pattern for the part of the name to replace; None: nothing is replaced."""
    replacement: str = ""
    repeats: bool = False
    """Whether every match is replaced, instead of the first only."""
    case: str = ""
    """`L` for lower case, `U` for upper case."""


class KerberosSettings(msgspec.Struct, frozen=True):
    """A listener's Kerberos identity, and the rules for its clients."""

    principal: str
    """`kafka/broker.example.com@EXAMPLE.COM`."""
    key_table: str | None = None
    """The key table file; None for the key table of the system."""
    rules: tuple[LocalRule, ...] = (LocalRule("DEFAULT"),)


def build_kerberos(listener: str, texts: Texts, options: Mapping[str, str] | None) -> KerberosSettings:
    """Return a listener's Kerberos settings; `options` are those of its login module. Raises ConfigError."""
    if find_spec("gssapi") is None:
        raise ConfigError(f"{listener} (SASL): sasl.enabled.mechanisms", GSSAPI, _LACKING)
    jaas = f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config"
    if options is None:
        raise ConfigError(jaas, "", f"a login module with the broker's key, as in {_JAAS_EXAMPLE}")
    for name, because in (("useKeyTab", "the keys are in a keytab"), ("storeKey", "keys are stored")):
        if options.get(name, "").lower() != "true":
            raise ConfigError(f"{jaas}: {name}", options.get(name, ""), f"true: {because}")
    principal = options.get("principal", "")
    if not re.fullmatch(r"[^/@]+(?:/[^/@]+)?(?:@[^/@]+)?", principal):
        raise ConfigError(f"{jaas}: principal", principal, "the broker's principal, as in kafka/host@REALM")
    key_table = options.get("keyTab", "").removeprefix("file:") or None
    if key_table is not None and not (os.path.isfile(key_table) and os.access(key_table, os.R_OK)):
        raise ConfigError(f"{jaas}: keyTab", key_table, "a keytab file that this process can read")
    _check_service(listener, texts, options.get("serviceName"))
    found = texts.get(RULES)
    try:
        rules = parse_local_rules(("DEFAULT",) if found is None else parse_list(found[1]))
    except ValueError as error:
        raise ConfigError(f"{listener} (SASL): {RULES}", "" if found is None else found[1], str(error)) from None
    return KerberosSettings(principal, key_table, rules)


def _check_service(listener: str, texts: Texts, of_module: str | None) -> None:
    """Raise ConfigError for a missing or contradictory service name, as Kafka does."""
    found = texts.get(SERVICE)
    given = None if found is None else found[1].strip() or None
    shown = f"{listener} (SASL): {SERVICE}"
    if given is None and of_module is None:
        raise ConfigError(shown, "", "the first part of the broker's principal, as in clients' tickets: kafka")
    if None not in (given, of_module) and given != of_module:
        raise ConfigError(shown, given, f"{of_module}, the serviceName of the login module, or only one of them")


def parse_local_rules(texts: Iterable[str]) -> tuple[LocalRule, ...]:
    """Parse the rules: `DEFAULT`, or `RULE:[n:format](match)s/pattern/replacement/g` and then `/L` or `/U`.

    Raises ValueError with the expected syntax.
    """
    return tuple(_parse_rule(text) for text in texts)


def _parse_rule(text: str) -> LocalRule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise ValueError(f"DEFAULT or RULE:[n:format](match)s/pattern/replacement/g/L, not {text!r}")
    if found["default"]:
        return LocalRule(text)
    parts = int(found["parts"])
    for reference in _REFERENCE.findall(found["format"]):
        if not reference or int(reference) > parts:
            raise ValueError(f"only references from $0 to ${parts} in {text!r}, which contains ${reference}")
    for pattern in (found["match"], found["pattern"]):
        _check_pattern(pattern, text)
    return LocalRule(
        text,
        found["format"],
        parts,
        found["match"],
        found["pattern"],
        found["new"] or "",
        repeats=found["all"] is not None,
        case=found["case"] or "",
    )


def _check_pattern(pattern: str | None, text: str) -> None:
    if pattern is None:
        return
    try:
        re2.compile(pattern)
    except re2.error as error:
        raise ValueError(f"RE2 patterns, but {pattern!r} in {text!r} is invalid: {error}") from None
