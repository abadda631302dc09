"""Parses TOML files to typed values; errors contain the file, the key, its value and the expected value.

Owns the conversion from bytes to `msgspec.Struct`s. Must not know particular keys: the struct is an argument.
"""

from __future__ import annotations

import re
import tomllib
import typing
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pybroker_spark.load.errors import ScenarioError

_Table = TypeVar("_Table", bound=msgspec.Struct)
#: msgspec appends the path of the value to its messages, unless it is the document itself.
_PATH = re.compile(r" - at `\$\.?(.*)`$")
_STEP = re.compile(r"(\w+)|\[(\d+)\]")


def read(path: Path, kind: type[_Table]) -> _Table:
    """Read a file as a struct. Raises ScenarioError."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: no TOML: {error}") from None
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{path}: {_explain(str(error), document, kind)}") from None


def _explain(message: str, value: Any, kind: Any) -> str:
    """Add the key, the value and the allowed words to msgspec's message."""
    found = _PATH.search(message)
    where = found[1].removesuffix("[...]") if found else ""
    for key, index in _STEP.findall(where):
        value = value[key] if key else value[int(index)]
        kind = typing.get_type_hints(kind)[key] if key else typing.get_args(kind)[0]
    if where and not (isinstance(kind, msgspec.StructMeta) and isinstance(value, dict)):
        where = f"{where} = {value!r}"
    known: tuple[str, ...] = ()
    if "unknown field" in message:
        known = kind.__struct_fields__
    elif "enum value" in message:
        known = typing.get_args(kind)
    what = _PATH.sub("", message) + (f"; these are known: {', '.join(known)}" if known else "")
    return f"{where}: {what}" if where else what
