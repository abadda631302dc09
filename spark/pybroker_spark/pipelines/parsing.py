"""Text to typed columns, or to one sentence that says what is wrong with it.

Owns how a line of CSV or JSON is read, and the words for what cannot be. All of it is Spark's own expressions: a good
row costs one parse, and only a bad one is looked at again, column by column, to find out which. Must not know where
the text comes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame

CORRUPT: Final = "__corrupt"
SHOWN_CHARACTERS: Final = 100
"""An error shows this much of a value."""


def parsed(rows: DataFrame, text: str, schema: StructType, form: str, options: Mapping[str, str]) -> DataFrame:
    """`rows` with `row`, a struct of `schema`, and `error`: null, or what is wrong with the column `text`.

    `form` is csv or json; `options` are those of Spark's reader of that name (`sep`, `quote`, `timestampFormat` ...).
    """
    value = sf.col(text)
    read = _reader(form, options)
    names = [field.name for field in schema.fields]
    row = sf.col("__row")
    broken = row[CORRUPT].isNotNull()
    if form == "json":
        # The parser stops at the end of the first object, whatever follows it.
        broken |= ~sf.coalesce(sf.json_array_length(_bracketed(value)) == 1, sf.lit(False))
    fault = _csv_fault(value, schema, read) if form == "csv" else _json_fault(value, schema, read)
    error = (
        sf.when(value.isNull(), sf.lit("there is no value"))
        .when(~sf.is_valid_utf8(value), sf.lit("the value is not UTF-8"))
        .when(row.isNull() | broken, fault)
    )
    good = sf.struct(*(row[name].alias(name) for name in names))
    return (
        rows.withColumn("__row", read(value, schema))
        .withColumn("error", error)
        .withColumn("row", sf.when(sf.col("error").isNull(), good))
        .drop("__row")
    )


def _reader(form: str, options: Mapping[str, str]) -> Callable[[Column, StructType], Column]:
    """A parse that notes in the field `CORRUPT` that something did not fit."""
    settings = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}

    def read(value: Column, schema: StructType) -> Column:
        noting = StructType([*schema.fields, StructField(CORRUPT, StringType())])
        if form == "csv":
            return sf.from_csv(value, sf.lit(_ddl(noting)), settings)
        return sf.from_json(value, noting, settings)

    return read


def _ddl(schema: StructType) -> str:
    return ", ".join(f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in schema.fields)


def _csv_fault(value: Column, schema: StructType, read: Callable[[Column, StructType], Column]) -> Column:
    """Which column of a line does not fit: its number of columns first, then each with the others left as text."""
    texts = StructType([StructField(field.name, StringType()) for field in schema.fields])
    as_text = read(value, texts)
    faults = [
        sf.when(
            as_text[CORRUPT].isNotNull(), sf.lit(f"the line has not the {len(schema.fields)} columns of the schema")
        )
    ]
    for number, field in enumerate(schema.fields):
        if isinstance(field.dataType, StringType):
            continue
        one = StructType([*texts.fields[:number], field, *texts.fields[number + 1 :]])
        faults.append(sf.when(read(value, one)[CORRUPT].isNotNull(), _unfit(field, as_text[field.name])))
    return sf.coalesce(*faults, sf.lit("the line does not fit the schema"))


def _json_fault(value: Column, schema: StructType, read: Callable[[Column, StructType], Column]) -> Column:
    """Whether a value is JSON, an object, and which of its fields does not fit."""
    faults = [
        sf.when(sf.json_array_length(_bracketed(value)).isNull(), sf.lit("the value is not JSON")),
        sf.when(sf.json_array_length(_bracketed(value)) != 1, sf.lit("the value is more than one of JSON")),
        sf.when(~sf.ltrim(value).startswith("{"), sf.lit("the value is JSON, but no object")),
    ]
    for field in schema.fields:
        found = sf.get_json_object(value, f"$['{field.name}']")
        faults.append(sf.when(read(value, StructType([field]))[CORRUPT].isNotNull(), _unfit(field, found)))
    return sf.coalesce(*faults, sf.lit("the value does not fit the schema"))


def _bracketed(value: Column) -> Column:
    return sf.concat(sf.lit("["), value, sf.lit("]"))


def _unfit(field: StructField, found: Column) -> Column:
    shown = sf.coalesce(sf.left(found, sf.lit(SHOWN_CHARACTERS)), sf.lit("null"))
    wanted = field.dataType.simpleString().upper()
    return sf.concat(sf.lit(f"column '{field.name}' is '"), shown, sf.lit(f"', and the schema says {wanted}"))
