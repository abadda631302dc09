r"""Java's `.properties` format, as far as Kafka's files use it, and `key=value` overrides.

Owns comments (`#`, `!`), the separators `=`, `:` and blank, continued lines, and the escapes `\t \n \r \f \\ \uXXXX`.
Must not know which keys exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.config.errors import PropertiesError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Line(msgspec.Struct, frozen=True):
    """A key and value of a file, with the line number."""

    text: str
    number: int
    """Number of its first line, from 1."""


def read_properties(path: Path) -> dict[str, str]:
    """Return the pairs of a file; the last of a duplicate key wins. Raises PropertiesError."""
    return {key: line.text for key, line in read_lines(path).items()}


def read_lines(path: Path) -> dict[str, Line]:
    """Return the pairs of a file with their lines; the last of a duplicate key wins. Raises PropertiesError."""
    text = _read(path)
    try:
        return parse_lines(text)
    except PropertiesError as error:
        raise PropertiesError(f"cannot read {path}: {error}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PropertiesError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise PropertiesError(f"cannot read {path}: not UTF-8 at byte {error.start}") from None


def parse_properties(text: str) -> dict[str, str]:
    """Return the pairs of a text in the properties format. Raises PropertiesError for an invalid escape."""
    return {key: line.text for key, line in parse_lines(text).items()}


def parse_lines(text: str) -> dict[str, Line]:
    """Return the pairs of a text in the properties format with their lines. Raises PropertiesError."""
    pairs = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        pairs[_unescape(key)] = Line(_unescape(value), number)
    return pairs


def parse_overrides(overrides: Iterable[str]) -> dict[str, str]:
    """Return the pairs of `key=value` arguments. Raises PropertiesError for an argument without `=`."""
    pairs = {}
    for override in overrides:
        key, sign, value = override.partition("=")
        if not sign or not key.strip():
            raise PropertiesError(f"--override {override}: expected key=value")
        pairs[key.strip()] = value.strip()
    return pairs


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        first = first if pending else number
        line = pending + line
        # An odd number of backslashes at the end continues the line; an even number is escaped backslashes.
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
            continue
        pending = ""
        yield first, line
    if pending:
        yield first, pending


def _split(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    key, rest = line[:position], line[position:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            out.append(character)
            continue
        escaped = text[position]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            try:
                out.append(chr(int(digits, 16)))
            except ValueError:
                raise PropertiesError(f"\\u{digits}: expected four hexadecimal digits") from None
            position += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    return _joined("".join(out))


def _joined(text: str) -> str:
    """Replace surrogate pairs by characters. Raises PropertiesError for an unpaired surrogate."""
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        half = error.object[error.start : error.start + 2]
        raise PropertiesError(f"\\u{int.from_bytes(half, 'little'):04x}: expected a pair of surrogates") from None
