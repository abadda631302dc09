"""Text to typed columns, or to a message about the error in it.

Owns the parsing of CSV and JSON lines, and the messages. It consists of Spark's own expressions: a valid row is
parsed once, and only an invalid one is parsed again, column by column, to find the error. Must not know where the
text comes from.
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
"""Maximum length of a value in an error."""


def parsed(rows: DataFrame, text: str, schema: StructType, form: str, options: Mapping[str, str]) -> DataFrame:
    """Return `rows` with `row`, a struct of `schema`, and `error`: null, or the error in the column `text`.

    `form` is csv or json; `options` are those of Spark's reader of that name (`sep`, `quote`, `timestampFormat`
    ...).
    """
    value = sf.col(text)
    read = _reader(form, options)
    names = [field.name for field in schema.fields]
    row = sf.col("__row")
    broken = row[CORRUPT].isNotNull()
    if form == "json":
        # The parser stops at the end of the first object and ignores the rest.
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
    """Return a parser that sets the field `CORRUPT` for an invalid value."""
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
    """Return the error of a line: its number of columns first, then the first column with an invalid value."""
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
    """Return the error of a value: invalid JSON, no object, or a field with an invalid value."""
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
