"""What is shown of a record's key and value: text, numbers, or the records of internal topics as JSON.

Owns the decoders of the options, and Kafka's messages for undecodable data. A decoder never fails: one invalid record
must not end the dump.
"""

from __future__ import annotations

import struct
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from pybroker.cli.dump_log.java_text import java_text
from pybroker.cli.errors import CommandError
from pybroker.protocol.codec import decode
from pybroker.protocol.errors import MalformedMessage, UnsupportedVersion
from pybroker.protocol.kafka_json import Json, json_of, json_text
from pybroker.protocol.messages import group_records, share_records, transaction_records
from pybroker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from pybroker.protocol.messages.records.frame import decode_versioned

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pybroker.cli.dump_log.segments import Decode
    from pybroker.protocol.schema import Message

STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"

DECODER_OPTIONS = {
    "offsets-decoder": "the __consumer_offsets topic",
    "transaction-log-decoder": "the __transaction_state topic",
    "cluster-metadata-decoder": "the metadata log",
    "remote-log-metadata-decoder": "tiered storage (not supported)",
    "share-group-state-decoder": "the __share_group_state topic",
}
"""Options without a value; the first one given applies."""

Shown = tuple[str | None, str | None]


class ChosenDecoder(NamedTuple):
    """The decoder, and whether an option selects it."""

    decode: Decode
    chosen: bool


def choose_decoder(arguments: argparse.Namespace) -> ChosenDecoder:
    """Return the decoder of the options. Raises CommandError."""
    if arguments.offsets_decoder:
        return ChosenDecoder(_of_coordinator(group_classes, _group_value), chosen=True)
    if arguments.transaction_log_decoder:
        names = transaction_records.TRANSACTION_RECORDS
        return ChosenDecoder(_of_coordinator(classes_of(transaction_records.__name__, names), json_of), chosen=True)
    if arguments.cluster_metadata_decoder:
        return ChosenDecoder(decode_metadata_record, chosen=True)
    if arguments.remote_log_metadata_decoder:
        raise CommandError("--remote-log-metadata-decoder is not supported: there is no tiered storage")
    if arguments.share_group_state_decoder:
        names = share_records.SHARE_RECORDS
        return ChosenDecoder(_of_coordinator(classes_of(share_records.__name__, names), json_of), chosen=True)
    read_key = _plain(arguments.key_decoder_class or STRING_DECODER)
    read_value = _plain(arguments.value_decoder_class or STRING_DECODER)
    chosen = arguments.key_decoder_class is not None or arguments.value_decoder_class is not None

    def decode_plain(_: int, key: bytes | None, value: bytes | None) -> Shown:
        return None if key is None else read_key(key), None if value is None else read_value(value)

    return ChosenDecoder(decode_plain, chosen)


def _plain(name: str) -> Callable[[bytes], str]:
    readers: dict[str, Callable[[bytes], str]] = {
        STRING_DECODER: java_text,
        "org.apache.kafka.tools.api.IntegerDecoder": lambda raw: str(struct.unpack_from(">i", raw)[0]),
        "org.apache.kafka.tools.api.LongDecoder": lambda raw: str(struct.unpack_from(">q", raw)[0]),
    }
    if name not in readers:
        raise CommandError(f"decoder class {name} is not supported; there are {', '.join(readers)}")
    return readers[name]


def decode_metadata_record(offset: int, _: bytes | None, value: bytes | None) -> Shown:
    """Format a record of the metadata log, which has no key."""
    try:
        record, version = decode_versioned(value or b"")
    except (MalformedMessage, UnsupportedVersion) as error:
        return None, f"Error at {offset}, skipping. {error}"
    return None, json_text(
        {"type": _upper(type(record).__name__), "version": version, "data": json_of(record, version)}
    )


def _upper(name: str) -> str:
    """Convert `TopicRecord` to `TOPIC_RECORD`."""
    return "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name).removeprefix("_")


Classes = tuple["type[Message]", "type[Message]"]


def classes_of(package: str, names: dict[int, str]) -> Callable[[int], Classes]:
    """Return a function from a record type to the classes of key and value in a package. It raises KeyError."""

    def find(record_type: int) -> Classes:
        name = names[record_type]
        module = import_module(f"{package}.{_upper(name).lower()}")
        return cast("type[Message]", getattr(module, f"{name}Key")), cast(
            "type[Message]", getattr(module, f"{name}Value")
        )

    return find


def group_classes(record_type: int) -> Classes:
    """Return the classes of key and value of a record of `__consumer_offsets`. Raises KeyError."""
    found = group_records.record_classes(record_type)
    return found.key, found.value


def _of_coordinator(classes: Callable[[int], Classes], show_value: Callable[[Message, int], Json]) -> Decode:
    """Return the decoder of records whose key begins with their type and whose value begins with its version."""

    def decode_record(offset: int, key: bytes | None, value: bytes | None) -> Shown:
        if key is None:
            raise CommandError(
                f"Failed to decode message at offset {offset} using the specified decoder (message had a missing key)"
            )
        try:
            record_type = version_of(key, "key")
            try:
                key_class, value_class = classes(record_type)
            except KeyError:
                return f"Unknown record type {record_type} at offset {offset}, skipping.", None
            shown = {"type": str(record_type), "data": json_of(read_half(key_class, key, 0, "key"), 0)}
            if value is None:
                return json_text(shown), "<DELETE>"
            version = version_of(value, "value")
            data = show_value(read_half(value_class, value, version, "value"), version)
        except UndecodedError as error:
            return f"Error at offset {offset}, skipping. {error}", None
        return json_text(shown), json_text({"version": str(version), "data": data})

    return decode_record


class UndecodedError(Exception):
    """A key or value that does not match the record's type."""


def version_of(raw: bytes, half: str) -> int:
    """Return the number at the start of a key or value. Raises UndecodedError."""
    if len(raw) < 2:
        raise UndecodedError(f"Could not read version from {half}'s buffer.")
    return int.from_bytes(raw[:2], "big", signed=True)


def read_half(cls: type[Message], raw: bytes, version: int, half: str) -> Message:
    """Decode a key or value, which begins with its version or type. Raises UndecodedError."""
    try:
        return decode(cls, raw, version, 2)[0]
    except (MalformedMessage, UnsupportedVersion) as error:
        raise UndecodedError(
            f"Could not read record with version {version} from {half}'s buffer due to: {error}."
        ) from None


def _group_value(message: Message, version: int) -> Json:
    """Format a value of `__consumer_offsets`, including the consumers' own subscriptions and assignments."""
    written = json_of(message, version)
    if written.get("protocolType") == "consumer" and "members" in written:
        members = cast("list[Json]", written["members"])
        for shown, member in zip(members, message.members, strict=True):  # type: ignore[attr-defined]
            _open(shown, "subscription", member.subscription, ConsumerProtocolSubscription)
            _open(shown, "assignment", member.assignment, ConsumerProtocolAssignment)
    return written


def _open(shown: Json, name: str, raw: bytes, cls: type[Message]) -> None:
    """Replace the bytes of a field by their decoded form; undecodable bytes are kept."""
    version = int.from_bytes(raw[:2], "big", signed=True)
    try:
        shown[name] = json_of(decode(cls, raw, version, 2)[0], version)
    except (MalformedMessage, UnsupportedVersion):
        return
