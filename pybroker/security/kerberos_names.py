"""`sasl.kerberos.principal.to.local.rules`: from a client's Kerberos principal to a user name.

Owns the application of rules (`pybroker.config.security.kerberos` has their syntax). Must not know tokens.

Source: Kafka's KerberosName, KerberosRule and KerberosShortNamer. Patterns are RE2 expressions, which take linear
time for any name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import re2

from pybroker.security.principal_mapping import expanded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.config.security.kerberos import LocalRule

_NAME = re.compile(r"(?P<first>[^/@]*)(?:/(?P<second>[^/@]*))?@(?P<realm>[^/@]*)")
_REFERENCE = re.compile(r"\$(\d+)")
_NOT_SIMPLE = re.compile(r"[/@]")


class NoLocalNameError(ValueError):
    """No rule applies to a principal. The message contains the principal and the reason."""


def local_name(principal: str, rules: Iterable[LocalRule], default_realm: str) -> str:
    """Return the user name of a principal, by the first matching rule. Raises NoLocalNameError."""
    found = _NAME.fullmatch(principal)
    if found is None:
        if _NOT_SIMPLE.search(principal):
            raise NoLocalNameError(f"{principal!r} is not a principal of one or two parts and a realm")
        return principal
    parts = [found["realm"], found["first"]] + ([] if found["second"] is None else [found["second"]])
    for rule in rules:
        made = _apply(rule, parts, default_realm)
        if made is None:
            continue
        if not made or _NOT_SIMPLE.search(made):
            raise NoLocalNameError(f"{rule.text} makes {made!r} of {principal!r}, which is not a simple name")
        if rule.case:
            made = made.lower() if rule.case == "L" else made.upper()
        return made
    raise NoLocalNameError(f"no rule of sasl.kerberos.principal.to.local.rules matches {principal!r}")


def _apply(rule: LocalRule, parts: list[str], default_realm: str) -> str | None:
    """Return the result of a rule for realm and components; None where the rule does not match."""
    if rule.format is None:
        return parts[1] if parts[0] == default_realm else None
    if len(parts) - 1 != rule.parts:
        return None
    base = _REFERENCE.sub(lambda found: parts[int(found[1])], rule.format)
    if rule.match is not None and re2.compile(rule.match).fullmatch(base) is None:
        return None
    if rule.pattern is None:
        return base
    made, at = "", 0
    for match in re2.compile(rule.pattern).finditer(base):
        made += base[at : match.start()] + expanded(rule.replacement, match)
        at = match.end()
        if not rule.repeats:
            break
    return made + base[at:]
