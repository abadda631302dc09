"""The columns of a read and of a write: names, order and types of Spark's Kafka connector, and a written timestamp.

Owns the schema of a read, and the validation of a write's schema. A Python source does not know which columns a
query uses, so a read builds all columns of its schema: the schema of the user (`.schema("value binary, offset long")`),
or the columns of the option `columns`.
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
"""The valid columns of a read; all but `headers` are included by default."""

WRITTEN: Final[dict[str, tuple[DataType, ...]]] = {
    "topic": (StringType(),),
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "headers": (HEADERS,),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}
"""The columns that a write uses, and their valid types; other columns are ignored.

All but `timestamp` are those of Spark's Kafka connector, which timestamps each row when it is written.
"""

_OF_TIMES: Final = {
    "timestamp_ntz": ": write cast(timestamp AS timestamp), a time in spark.sql.session.timeZone, or drop the column"
}
_OF_OTHERS: Final = ": cast it, or drop the column to have each record get the time of its writing"
"""Advice for a column `timestamp` of another type: Spark's Kafka connector ignores it, so programs may have one."""


def read_schema(options: ReadOptions) -> StructType:
    """Return the schema of a read without a user's schema. Raises OptionError."""
    names = options.columns
    if names is None:
        names = tuple(name for name in READ if name != "headers" or options.include_headers)
    unknown = [name for name in names if name not in READ]
    if unknown or not names or len(set(names)) < len(names):
        given = ",".join(options.columns or ())
        raise OptionError(f"columns={given}: must be some of {', '.join(READ)}, each once")
    return StructType([StructField(name, READ[name]) for name in names])


def read_columns(options: ReadOptions, schema: StructType) -> tuple[str, ...]:
    """Return the columns to build for a schema, which may be the user's. Raises OptionError."""
    names = tuple(field.name for field in schema)
    for field in schema:
        wanted = READ.get(field.name)
        if wanted is None:
            raise OptionError(f"schema: there is no column {field.name!r}; there are {', '.join(READ)}")
        if field.dataType != wanted or not field.nullable:
            kind = field.dataType.simpleString() + ("" if field.nullable else " not null")
            raise OptionError(f"schema: column {field.name} is {kind}; must be {wanted.simpleString()}, nullable")
    if len(set(names)) < len(names) or not names:
        raise OptionError(
            f"schema: columns {', '.join(names) or 'none'}; expected at least one column, and no duplicates"
        )
    if options.columns is not None and options.columns != names:
        raise OptionError(f"columns={','.join(options.columns)}: the schema has {', '.join(names)}; give only one")
    return names


def written_columns(schema: StructType, topic: str | None) -> list[str]:
    """Return the columns that a write uses. Raises OptionError with the messages of Spark's Kafka connector."""
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
    """Whether two types are equal except for nullability."""
    return found.simpleString() == wanted.simpleString()
