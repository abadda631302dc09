"""The formatters of the console consumer, by the names and properties of Kafka's formatters.

Owns the names, old and new, and the properties of each formatter; text layouts belong to the engine
(`pybroker.client.text`). Records of internal topics are formatted one by one, as JSON.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.cli.console_options import is_true
from pybroker.cli.dump_log.decoders import UndecodedError, classes_of, group_classes, read_half, version_of
from pybroker.cli.errors import CommandError
from pybroker.client.text import DECODERS, SHOWN, RecordFormat
from pybroker.protocol.kafka_json import json_of, json_text
from pybroker.protocol.messages import transaction_records

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.client.consuming.fetcher import Record
    from pybroker.protocol.schema import Message

_PACKAGES = ("org.apache.kafka.tools.consumer.", "kafka.tools.", "kafka.coordinator.group.GroupMetadataManager$")
_TRANSACTION_LOG = "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter"
_SUFFIX = "MessageFormatter"
_DESERIALIZER = "org.apache.kafka.common.serialization."
_TEXT_KEYS = ("key.separator", "line.separator", "headers.separator", "null.literal")
_SEPARATORS = {"key.separator": "\t", "line.separator": "\n", "headers.separator": ",", "null.literal": "null"}


class Formatter(NamedTuple):
    """The format of records: either `layout` or `show` is set."""

    layout: RecordFormat | None = None
    """The engine's layout."""
    pretty: bool = False
    """Whether the layout is JSON that must be pretty-printed."""
    show: Callable[[Record], bytes] | None = None
    """Returns the bytes of a record, empty for a record that is skipped. Raises UndecodedError."""


def find_formatter(name: str, properties: Mapping[str, str], *, as_json: bool = False) -> Formatter:
    """Return the formatter of a name, Kafka's class or its short form. Raises CommandError.

    `as_json`: each record is written as a JSON object, whatever the formatter is.
    """
    short = _short_name(name)
    if as_json or short == "json":
        return Formatter(_layout("json", properties), pretty=not as_json)
    if short in ("Default", "Logging", "NoOp"):
        return Formatter(_layout("nothing" if short == "NoOp" else "text", properties, logs=short == "Logging"))
    shown = {
        "Offsets": _shows(group_classes, (0, 1)),
        "GroupMetadata": _shows(group_classes, (2,)),
        "TransactionLog": _shows(
            classes_of(transaction_records.__name__, transaction_records.TRANSACTION_RECORDS), (0,)
        ),
    }
    if short not in shown:
        known = ", ".join(("Default", "Logging", "NoOp", *shown))
        raise CommandError(f"--formatter {name}: unknown formatter; expected one of {known} or json")
    return Formatter(show=shown[short])


def _short_name(name: str) -> str:
    if name == _TRANSACTION_LOG:
        return "TransactionLog"
    for package in _PACKAGES:
        name = name.removeprefix(package)
    return name.removesuffix(_SUFFIX)


def _layout(style: str, properties: Mapping[str, str], *, logs: bool = False) -> RecordFormat:
    shown = {part for part in SHOWN if is_true(properties.get(f"print.{part}", "true" if part == "value" else "false"))}
    known = {f"print.{part}" for part in SHOWN} | set(_TEXT_KEYS)
    known |= {f"{part}.deserializer" for part in ("key", "value", "headers")}
    if unknown := sorted(properties.keys() - known):
        raise CommandError(f"{unknown[0]}: not a property of the formatter; expected one of {', '.join(sorted(known))}")
    texts = {key: properties.get(key, _SEPARATORS[key]).encode("utf-8", "surrogateescape") for key in _TEXT_KEYS}
    return RecordFormat(
        style=style,
        shown=shown,
        key_separator=texts["key.separator"],
        line_separator=texts["line.separator"],
        headers_separator=texts["headers.separator"],
        null_literal=texts["null.literal"],
        key=_decoder(properties.get("key.deserializer")),
        value=_decoder(properties.get("value.deserializer")),
        headers=_decoder(properties.get("headers.deserializer")),
        logs=logs,
    )


def _decoder(name: str | None) -> str | None:
    """Return the decoder for `org...IntegerDeserializer`, `Integer`, or a `serdes` name."""
    if not name:
        return None
    short = name.removeprefix(_DESERIALIZER).removesuffix("Deserializer")
    by_name = {decoder.lower(): decoder for decoder in DECODERS}
    if short.lower() not in by_name:
        raise CommandError(f"{name}: unknown deserializer; expected one of {', '.join(DECODERS)}")
    return by_name[short.lower()]


def lay_out(lines: bytes) -> bytes:
    """Pretty-print JSON objects, one a line; keys, values and headers that are JSON are embedded as such."""
    written = []
    for line in lines.splitlines():
        record = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        for part in ("key", "value"):
            record[part] = _opened(record[part])
        written.append(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    return b"".join(written)


def _opened(raw: msgspec.Raw) -> msgspec.Raw:
    text = msgspec.json.decode(raw)
    if not isinstance(text, str):
        return raw
    try:
        json.loads(text)
    except ValueError:
        return raw
    return msgspec.Raw(text.strip().encode())


Classes = tuple["type[Message]", "type[Message]"]


def _shows(classes: Callable[[int], Classes], types: tuple[int, ...]) -> Callable[[Record], bytes]:
    """Return a function that formats the records of an internal topic with one of these types."""

    def show(record: Record) -> bytes:
        if record.key is None:
            return b""
        record_type = version_of(record.key, "key")
        if record_type not in types:
            return b""
        key_class, value_class = classes(record_type)
        key = json_of(read_half(key_class, record.key, 0, "key"), 0)
        shown: dict[str, object] = {"key": {"type": record_type, "data": key}, "value": None}
        if record.value is not None:
            version = version_of(record.value, "value")
            value = read_half(value_class, record.value, version, "value")
            shown["value"] = {"version": version, "data": json_of(value, version)}
        return json_text(shown).encode() + b"\n"

    return show


__all__ = ["Formatter", "UndecodedError", "find_formatter", "lay_out"]
