"""Claims about `pybroker_spark.source.schema`."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pybroker_spark.source.errors import OptionError
from pybroker_spark.source.options import ReadOptions, parse_read
from pybroker_spark.source.schema import HEADERS, read_columns, read_schema, written_columns

VALUE = StructField("value", BinaryType())


def options(**given: str) -> ReadOptions:
    return parse_read({"kafka.bootstrap.servers": "h:1", "subscribe": "orders", **given})


def test_a_read_has_the_connectors_columns() -> None:
    schema = read_schema(options())
    assert schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    assert all(field.nullable for field in schema)
    with_headers = read_schema(options(includeHeaders="true"))
    assert with_headers[-1] == StructField("headers", HEADERS)
    assert with_headers[-1].dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_the_option_columns_picks_and_orders() -> None:
    schema = read_schema(options(columns="offset, value"))
    assert schema.names == ["offset", "value"]
    assert read_columns(options(columns="offset, value"), schema) == ("offset", "value")


def test_a_schema_of_the_users_own_picks_too() -> None:
    assert read_columns(options(), StructType([VALUE, StructField("offset", LongType())])) == ("value", "offset")


@pytest.mark.parametrize("columns", ["", "value,values", "value,value"])
def test_columns_that_there_are_not_are_refused(columns: str) -> None:
    with pytest.raises(OptionError, match=rf"^columns={columns}: must be some of key, value, topic, .* each once"):
        read_schema(options(columns=columns))


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (StructField("body", BinaryType()), r"there is no column 'body'; there are key, value"),
        (StructField("value", StringType()), r"column value is string; must be binary, nullable"),
        (StructField("value", BinaryType(), nullable=False), r"column value is binary not null; must be binary, null"),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused(field: StructField, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        read_columns(options(), StructType([field]))


def test_a_schema_and_the_option_columns_must_agree() -> None:
    with pytest.raises(OptionError, match=r"^columns=key: the schema has value; give only one"):
        read_columns(options(columns="key"), StructType([VALUE]))


def test_a_write_looks_at_the_connectors_columns_and_the_time_and_no_others() -> None:
    schema = StructType(
        [
            StructField("offset", LongType()),
            StructField("topic", StringType()),
            StructField("value", StringType()),
            StructField("key", BinaryType()),
            StructField("partition", IntegerType()),
            StructField("timestamp", TimestampType()),
            StructField("headers", HEADERS),
        ]
    )
    columns = ["key", "value", "headers", "partition", "timestamp"]
    assert written_columns(schema, None) == ["topic", *columns]
    assert written_columns(schema, "orders") == columns, "the option goes first"


@pytest.mark.parametrize(
    ("fields", "topic", "reason"),
    [
        (
            [VALUE],
            None,
            r"topic option required when no 'topic' attribute is present. Use the topic option for setting",
        ),
        ([StructField("key", BinaryType())], "orders", r"Required attribute 'value' not found; there are key"),
        (
            [StructField("value", LongType())],
            "orders",
            r"^value attribute unsupported type bigint. value must be a\(n\) ",
        ),
        (
            [VALUE, StructField("partition", LongType())],
            "t",
            r"^partition attribute unsupported type bigint. partition",
        ),
        (
            [VALUE, StructField("headers", StringType())],
            "t",
            r"^headers attribute unsupported type string. headers must",
        ),
        (
            [VALUE, StructField("timestamp", TimestampNTZType())],
            "t",
            r"type timestamp_ntz. timestamp must be a\(n\) timestamp: write cast\(timestamp AS timestamp\), a time in",
        ),
        (
            [VALUE, StructField("timestamp", StringType())],
            "t",
            r"^timestamp attribute unsupported type string. timestamp must be a\(n\) timestamp: cast it, or drop",
        ),
    ],
)
def test_a_write_is_refused_in_the_connectors_words(fields: list[StructField], topic: str | None, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        written_columns(StructType(fields), topic)
