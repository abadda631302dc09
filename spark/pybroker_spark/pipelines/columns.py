"""Columns of rows that become parts of records: paths to them, also into nested fields, and their valid types.

Owns the validation of `--key`, `--timestamp`, `--partition` and `--headers`: before Spark starts where the schema is
given as DDL, and after that where Spark infers the schema. Spark itself parses the DDL; here only names and nesting
are parsed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, StructType

from pybroker_spark.pipelines.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

HEADERS: Final = "array<struct<key:string,value:binary>>"

_INTEGERS: Final = r"tinyint|smallint|int|bigint"
_WANTED: Final = {
    "timestamp": (rf"timestamp|timestamp_ntz|{_INTEGERS}", "TIMESTAMP, or BIGINT for milliseconds since 1970"),
    "partition": (_INTEGERS, "INT"),
    "headers": (
        r"map<string,(string|binary)>|struct<.*>|array<struct<key:string,value:(string|binary)>>",
        "MAP<STRING, STRING>, a STRUCT whose fields become headers, or ARRAY<STRUCT<key STRING, value BINARY>>",
    ),
}
"""The valid types by Spark's names, and their description. A key has any type: its text is sent."""

_ALIASES: Final = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
    "timestamp_ltz": "timestamp",
}
_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)+`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|[<>(),:=])")


@dataclass(slots=True)
class Node:
    """A column: its type as Spark writes it, and the fields of a struct by name."""

    kind: str
    fields: dict[str, Node] = field(default_factory=dict)

    def find(self, path: str) -> tuple[tuple[str, ...], Node] | None:
        """Return the names of the path to a column, and the column. A column with dots in its name takes precedence."""
        if path in self.fields:
            return (path,), self.fields[path]
        for end in (place for place, letter in enumerate(path) if letter == "."):
            inner = self.fields.get(path[:end])
            if inner is not None and (found := inner.find(path[end + 1 :])) is not None:
                return (path[:end], *found[0]), found[1]
        return None


def of_type(kind: DataType) -> Node:
    """Return the columns of a schema."""
    inner = {one.name: of_type(one.dataType) for one in kind.fields} if isinstance(kind, StructType) else {}
    return Node(kind.simpleString(), inner)


def of_ddl(text: str) -> Node | None:
    """Return the columns of a DDL schema, as `id INT, user STRUCT<id: INT>`; None for an invalid one."""
    tokens, at = [], 0
    while found := _TOKEN.match(text, at):
        tokens.append(found[1])
        at = found.end()
    if text[at:].strip():
        return None
    try:
        fields = _fields(tokens, "")
    except (IndexError, ValueError):
        return None
    return None if tokens else _struct(fields)


def _struct(fields: dict[str, Node]) -> Node:
    return Node(f"struct<{','.join(f'{name}:{node.kind}' for name, node in fields.items())}>", fields)


def _fields(tokens: list[str], end: str) -> dict[str, Node]:
    """Parse names and types up to `end`, or to the end of the text. Raises IndexError, ValueError."""
    fields: dict[str, Node] = {}
    while True:
        token = tokens.pop(0)
        name = token[1:-1].replace("``", "`") if token.startswith("`") else token
        if not re.match(r"\w|`", token):
            raise ValueError(token)
        if tokens[0] == ":":
            tokens.pop(0)
        fields[name] = _kind(tokens)
        while tokens and tokens[0] not in (",", end):  # NOT NULL, COMMENT '...', and types of several words
            tokens.pop(0)
        if not tokens or tokens[0] == end:
            return fields
        tokens.pop(0)


def _kind(tokens: list[str]) -> Node:
    word = tokens.pop(0).lower()
    if not re.fullmatch(r"\w+", word):
        raise ValueError(word)
    if not tokens or tokens[0] not in ("<", "("):
        return Node(_ALIASES.get(word, word))
    closing = {"<": ">", "(": ")"}[tokens.pop(0)]
    if word == "struct":
        node = _struct(_fields(tokens, closing))
    else:
        inner = []
        while tokens[0] != closing:
            inner.append(tokens.pop(0) if closing == ")" else _kind(tokens).kind)
            if tokens[0] == ",":
                tokens.pop(0)
        node = Node(f"{word}{'<' if closing == '>' else '('}{','.join(part for part in inner if part != ',')}{closing}")
    tokens.pop(0)
    return node


def check(schema: Node, options: Mapping[str, str | None]) -> None:
    """Reject a missing column, or one with an invalid type for its option. Raises UsageError."""
    for option, path in options.items():
        if path is None:
            continue
        found = schema.find(path)
        if found is None:
            raise UsageError(f"--{option}: there is no column '{path}'; there are {', '.join(_paths(schema))}")
        pattern, words = _WANTED.get(option, (".*", ""))
        if not re.fullmatch(pattern, found[1].kind):
            raise UsageError(f"--{option}: column '{path}' is {found[1].kind.upper()}; must be {words}")


def _paths(schema: Node) -> list[str]:
    """Return the paths of all columns, with fields of a struct behind it."""
    return [
        name if not below else f"{name}.{below}"
        for name, node in schema.fields.items()
        for below in ("", *_paths(node))
    ]


def column(schema: Node, root: str, path: str) -> tuple[Column, Node]:
    """Return the column at a path below the column `root`."""
    found = schema.find(path)
    assert found is not None, path
    names = [root, *("`" + name.replace("`", "``") + "`" for name in found[0])]
    return sf.col(".".join(names)), found[1]


def key(schema: Node, root: str, path: str) -> Column:
    """Return a record's key: the text of a column."""
    return column(schema, root, path)[0].cast("string").cast("binary")


def timestamp(schema: Node, root: str, path: str) -> Column:
    """Return a record's timestamp: integers are milliseconds since 1970."""
    found, node = column(schema, root, path)
    return found.cast("timestamp") if node.kind.startswith("timestamp") else sf.timestamp_millis(found.cast("bigint"))


def headers(schema: Node, root: str, path: str) -> Column:
    """Return a record's headers: entries of a map, non-null fields of a struct, or an array of pairs."""
    found, node = column(schema, root, path)
    if node.kind.startswith("array"):
        return found.cast(HEADERS)
    if node.kind.startswith("map"):
        return sf.map_entries(found).cast(HEADERS)
    pairs = [
        sf.struct(sf.lit(name).alias("key"), found.getField(name).cast("string").cast("binary").alias("value"))
        for name in node.fields
    ]
    given = sf.filter(sf.array(*pairs), lambda pair: pair["value"].isNotNull()).cast(HEADERS)
    return sf.when(found.isNotNull(), given)


def size_of(header_list: Column) -> Column:
    """Return the maximum bytes of headers in a record: each has two lengths."""
    sizes = sf.transform(
        header_list,
        lambda pair: sf.octet_length(pair["key"]) + sf.coalesce(sf.octet_length(pair["value"]), sf.lit(0)) + 10,
    )
    return sf.coalesce(sf.aggregate(sizes, sf.lit(0), lambda total, size: total + size), sf.lit(0))
