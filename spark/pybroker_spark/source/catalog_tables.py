"""Tables of Spark's catalog (`CREATE TABLE ... USING pybroker`), whose options are stored in the schema.

Spark passes the options of such a table to a Python source once, for the schema, and none for a read or write. It
keeps the columns' metadata. Owns that metadata; `options` interprets the options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructField, StructType

from pybroker_spark.source.errors import OptionError

if TYPE_CHECKING:
    from typing import Any

SECRETS: Final = r"(?i)kafka[.].*(passw|secret|jaas|keystore[.]key|key[.]pem|token)"
"""Options with secrets. Spark itself hides passwords, secrets and tokens, but displays a private key in a plan."""

_PROVIDER: Final = "provider"
"""A property that every table has, and which is no option."""
_OPTION: Final = "option."
_METADATA: Final = "pybroker.options"
_SERVERS: Final = "kafka.bootstrap.servers"


def is_table(options: Mapping[str, str]) -> bool:
    """Whether these are the properties of a table that is being created."""
    return _PROVIDER in {name.lower() for name in options}


def table_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options among the properties of a table. Raises OptionError for a secret."""
    given = {name.lower(): value for name, value in properties.items()}
    options = {name.removeprefix(_OPTION): value for name, value in given.items() if name.startswith(_OPTION)}
    for name in sorted(options):
        if re.search(SECRETS, name):
            raise OptionError(
                f"{name}: a table's options are kept in its schema, where others see them; use CREATE TEMPORARY VIEW"
                " ... USING pybroker OPTIONS (...), or name a file (kafka.ssl.truststore.location)"
            )
    return options


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return a schema whose columns contain a table's options."""
    metadata = {_METADATA: json.dumps(dict(options), sort_keys=True)}
    return StructType([StructField(field.name, field.dataType, field.nullable, metadata) for field in schema])


def completed(options: Mapping[str, str], schema: StructType) -> Mapping[str, str]:
    """Return the options of a read or write, with those of its table. Raises OptionError where Spark has lost the
    table's.

    Options that contain servers are complete: a frame that was read from a table is written to these servers.
    """
    if any(name.lower() == _SERVERS for name in options):
        return options
    carried = {_carried(field.metadata) for field in schema}
    if len(carried) == 1 and (text := carried.pop()) is not None:
        return {**json.loads(text), **options}
    if not options:
        raise OptionError(
            "no options are given, and kafka.bootstrap.servers is required. Of a table that was created with columns or"
            " AS SELECT Spark gives a source in Python no options: create it without, with OPTIONS (columns"
            " 'key,value', ...) for some columns"
        )
    return options


def _carried(metadata: Mapping[str, Any] | None) -> str | None:
    return None if metadata is None else metadata.get(_METADATA)
