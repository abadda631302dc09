"""The columns of a read and of a write: names, order and types of Spark's Kafka connector, and a written timestamp.

Owns which schema a read has and which one a write accepts. A Python source cannot see which columns a query
uses, so a read builds those of its schema: the user's own (`.schema("value binary, offset long")`) or that of the
option `columns`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pybroker_spark.source.errors import OptionError
from pybroker_spark.source.options import ReadOptions

HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

READ: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS,
}
"""The columns that a read may have; all but `headers` are there unless the user asks for others."""

WRITTEN: Final[dict[str, tuple[DataType, ...]]] = {
    "topic": (StringType(),),
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "headers": (HEADERS,),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}
"""The columns that a write uses, and the types that each may have; others are left alone.

All but `timestamp` are those of Spark's Kafka connector, which gives every row the time of its writing.
"""

_OF_TIMES: Final = {
    "timestamp_ntz": ": write cast(timestamp AS timestamp), a time in spark.sql.session.timeZone, or drop the column"
}
_OF_OTHERS: Final = ": cast it, or drop the column to have each record get the time of its writing"
"""Spark's Kafka connector ignores the column: what is right for it has a name here, or a type, that has to change."""


def read_schema(options: ReadOptions) -> StructType:
    """The schema of a read to which the user gave none. Raises OptionError."""
    names = options.columns
    if names is None:
        names = tuple(name for name in READ if name != "headers" or options.include_headers)
    unknown = [name for name in names if name not in READ]
    if unknown or not names or len(set(names)) < len(names):
        given = ",".join(options.columns or ())
        raise OptionError(f"columns={given}: must be some of {', '.join(READ)}, each once")
    return StructType([StructField(name, READ[name]) for name in names])


def read_columns(options: ReadOptions, schema: StructType) -> tuple[str, ...]:
    """The columns to build for a schema, which may be the user's own. Raises OptionError."""
    names = tuple(field.name for field in schema)
    for field in schema:
        wanted = READ.get(field.name)
        if wanted is None:
            raise OptionError(f"schema: there is no column {field.name!r}; there are {', '.join(READ)}")
        if field.dataType != wanted or not field.nullable:
            kind = field.dataType.simpleString() + ("" if field.nullable else " not null")
            raise OptionError(f"schema: column {field.name} is {kind}; must be {wanted.simpleString()}, nullable")
    if len(set(names)) < len(names) or not names:
        raise OptionError(f"schema: columns {', '.join(names) or 'none'}; must be at least one, each once")
    if options.columns is not None and options.columns != names:
        raise OptionError(f"columns={','.join(options.columns)}: the schema has {', '.join(names)}; give only one")
    return names


def written_columns(schema: StructType, topic: str | None) -> list[str]:
    """The columns of a write that are looked at. Raises OptionError in the words of Spark's Kafka connector."""
    types = {field.name: field.dataType for field in schema}
    if topic is None and "topic" not in types:
        raise OptionError(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
        )
    if "value" not in types:
        raise OptionError(f"Required attribute 'value' not found; there are {', '.join(types) or 'no columns'}")
    columns = [name for name in WRITTEN if name in types and not (name == "topic" and topic is not None)]
    for name in columns:
        if not any(_same(types[name], wanted) for wanted in WRITTEN[name]):
            wanted_types = " or ".join(wanted.simpleString() for wanted in WRITTEN[name])
            advice = _OF_TIMES.get(types[name].simpleString(), _OF_OTHERS) if name == "timestamp" else ""
            raise OptionError(
                f"{name} attribute unsupported type {types[name].simpleString()}. {name} must be a(n) {wanted_types}"
                f"{advice}"
            )
    return columns


def _same(found: DataType, wanted: DataType) -> bool:
    """Equal but for what may be null."""
    return found.simpleString() == wanted.simpleString()
