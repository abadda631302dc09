"""What an implementation of the kernels has, and the form of what goes in and comes out."""

from __future__ import annotations

from array import array
from typing import Protocol, TypeAlias

Integers: TypeAlias = "array[int]"
"""64-bit signed integers, `array("q")`."""


class Kernels(Protocol):
    """The kernels, as a module has them. Byte order inside `bytes` that stand for integers is the machine's."""

    def zigzag(self, values: Integers) -> bytes:
        """Unsigned 64-bit integers: 0, -1, 1, -2 become 0, 1, 2, 3."""

    def encode_varints(self, values: Integers) -> bytes:
        """The zigzag varints one after the other, seven bits a byte, lowest first."""

    def decode_varints(self, data: bytes) -> bytes:
        """The signed 64-bit integers of such varints. `ValueError` for a varint that is cut."""

    def crc32c(self, data: bytes) -> int:
        """The CRC-32C (RFC 3720)."""

    def build_batch(self, values: list[bytes], timestamp_ms: int) -> bytes:
        """A v2 batch of records without keys and headers (Kafka's `DefaultRecordBatch`)."""

    def validate_batch(self, batch: bytes) -> int:
        """The number of records of a batch. `ValueError` unless length, checksum and records are sound."""

    def search_index(self, entries: bytes, relative_offset: int) -> int:
        """The position in the last index entry (two big-endian 32-bit integers) not above an offset; else 0."""
