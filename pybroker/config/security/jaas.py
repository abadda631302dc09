"""JAAS: the syntax in which Kafka's settings configure a login module and its options.

Owns the syntax of `sasl.jaas.config`: one or more of `MODULE FLAG name=value ... ;`, values quoted or unquoted, with
comments in Java's syntax between them. Must not know particular modules, or the meaning of their options.

Source: Kafka's JaasConfig, and Java's StreamTokenizer, its tokenizer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""[\x00-\x20]+ | /\*.*?(?:\*/|\Z) | /[^\n]*            # blanks and comments
    | (?P<quoted>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
    | (?P<sign>[=;])
    | (?P<word>[^\x00-\x20=;"'/]+)
    | (?P<open>["'])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """The text is no JAAS configuration. The message has the reason, without any value of the text."""


class LoginModule(msgspec.Struct, frozen=True):
    """One entry: the class of a login module, and its options."""

    name: str
    flag: str
    options: Mapping[str, str]


def parse_jaas(text: str) -> tuple[LoginModule, ...]:
    """Parse a JAAS text with at least one entry. Raises JaasError."""
    tokens = list(_tokens(text))
    entries = []
    at = 0
    while at < len(tokens):
        end = next((index for index in range(at, len(tokens)) if tokens[index] == (";", True)), None)
        if end is None:
            raise JaasError("an entry is not terminated by a semicolon")
        entries.append(_entry(tokens[at:end]))
        at = end + 1
    if not entries:
        raise JaasError("no login module is specified")
    return tuple(entries)


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield (word or value, False) and (sign, True)."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found["open"]:
            raise JaasError(f"a quote at character {at + 1} is not closed")
        at = found.end()
        if found["quoted"] is not None:
            yield _ESCAPE.sub(_unescape, found["quoted"][1:-1]), False
        elif found["sign"] is not None:
            yield found["sign"], True
        elif found["word"] is not None:
            yield found["word"], False


def _unescape(found: re.Match[str]) -> str:
    escaped = found[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPED.get(escaped, escaped)


def _entry(tokens: list[tuple[str, bool]]) -> LoginModule:
    words = [word for word, _ in tokens]
    if not tokens or tokens[0][1]:
        raise JaasError("an entry begins without a login module")
    if len(tokens) == 1 or tokens[1][1]:
        raise JaasError(f"the control flag of {words[0]} is not specified; it is one of {', '.join(_FLAGS)}")
    if words[1].lower() not in _FLAGS:
        raise JaasError(f"the control flag of {words[0]} is one of {', '.join(_FLAGS)}, not {words[1]}")
    options = {}
    for at in range(2, len(tokens), 3):
        name, sign, value = (*tokens[at : at + 3], ("", True), ("", True))[:3]
        if name[1] or sign != ("=", True) or value[1]:
            raise JaasError(f"an option of {words[0]} is not name=value; put a value with other characters in quotes")
        options[name[0]] = value[0]
    return LoginModule(words[0], words[1].lower(), options)
