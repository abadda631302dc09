"""`ssl.principal.mapping.rules`: from a certificate's distinguished name to a principal's name.

Owns the rules and their syntax. Must not read certificates.

Source: Kafka's SslPrincipalMapper (KIP-371). Patterns are RE2 expressions, which take linear time for any name;
Java's back references and look-around are rejected.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import re2

if TYPE_CHECKING:
    import re2

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<new>(?:\\.|[^\\/])*)/(?P<case>[LU]?))?\s*"
)
_REFERENCE = re.compile(r"\\(?P<literal>.)|\$(?P<group>[0-9]+)")


class MappingError(ValueError):
    """The text is no list of rules. The message has the position."""


class NoRuleError(ValueError):
    """No rule matches a name."""


class Rule(msgspec.Struct, frozen=True):
    """One rule; without a pattern it is DEFAULT, which maps every name to itself."""

    pattern: str | None
    replacement: str = ""
    case: str = ""
    """`L` for lower case, `U` for upper case."""

    def apply(self, name: str) -> str | None:
        """Return the result of the rule for a distinguished name, None where it does not match."""
        if self.pattern is None:
            return name
        pattern = re2.compile(self.pattern)
        if pattern.fullmatch(name) is None:
            return None
        made, at = "", 0
        for match in pattern.finditer(name):
            made += name[at : match.start()] + expanded(self.replacement, match)
            at = match.end()
        made += name[at:]
        return {"L": made.lower, "U": made.upper}.get(self.case, lambda: made)()


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Parse the comma-separated rules `DEFAULT` and `RULE:pattern/replacement/[LU]`.

    Raises MappingError.
    """
    rules, at = [], 0
    while at < len(text):
        match = _RULE.match(text, at)
        end = at if match is None else match.end()
        if match is None or (end < len(text) and text[end] != ","):
            raise MappingError(f"{text[at:]!r} is neither DEFAULT nor RULE:pattern/replacement/ with optional L or U")
        if match["default"]:
            rules.append(Rule(None))
        elif match["pattern"] is not None:
            rules.append(Rule(_checked(match["pattern"]), match["new"], match["case"]))
        at = end + 1
    return tuple(rules)


def map_name(rules: tuple[Rule, ...], name: str) -> str:
    """Return the principal's name of a distinguished name, by the first matching rule. Raises NoRuleError."""
    for rule in rules:
        made = rule.apply(name)
        if made is not None:
            return made
    raise NoRuleError(f"no rule of ssl.principal.mapping.rules matches {name!r}")


def _checked(pattern: str) -> str:
    try:
        re2.compile(pattern)
    except re2.error as error:
        raise MappingError(f"RULE:{pattern} is not a valid RE2 pattern: {error}") from None
    return pattern


def expanded(replacement: str, match: re2._Match[str]) -> str:
    """Expand a replacement in Java's syntax with the groups of a match.

    A reference to a missing group stays as text.
    """
    groups = match.re.groups

    def expand(found: re.Match[str]) -> str:
        if found["literal"] is not None:
            return found["literal"]
        digits = found["group"]
        number, taken = int(digits[0]), 1
        while taken < len(digits) and number * 10 + int(digits[taken]) <= groups:
            number, taken = number * 10 + int(digits[taken]), taken + 1
        return found[0] if number > groups else (match.group(number) or "") + digits[taken:]

    return _REFERENCE.sub(expand, replacement)
