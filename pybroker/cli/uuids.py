"""Ids as Kafka's tools read them: base64 for URLs, refused in the words of Java's decoder.

Owns those messages and the order of Java's checks (Uuid.fromString, Base64.Decoder.decode0).
"""

from __future__ import annotations

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_SIZE = 16
_LONGEST_TEXT = 24


def parse_uuid(text: str) -> bytes:
    """Return the 16 bytes of an id, with or without padding. Raises ValueError with Java's message.

    As in Java, extra bits of the last character are ignored.
    """
    if len(text) > _LONGEST_TEXT:
        prefix = text[:_LONGEST_TEXT]
        raise ValueError(f"Input string with prefix `{prefix}` is too long to be decoded as a base64 UUID")
    # Java writes a question mark for characters outside of Latin-1.
    decoded = _decode(text.encode("latin-1", "replace"))
    if len(decoded) != _SIZE:
        raise ValueError(
            f"Input string `{text}` decoded as {len(decoded)} bytes, which is not equal to the expected {_SIZE} bytes "
            "of a base64-encoded UUID"
        )
    return decoded


def _decode(text: bytes) -> bytes:
    if len(text) == 1:
        raise ValueError("Input byte[] should at least have 2 bytes for base64 bytes")
    digits = text.partition(b"=")[0]
    bits = 0
    for character in digits:
        digit = _ALPHABET.find(character)
        if digit < 0:
            # Java's bytes are signed.
            raise ValueError(f"Illegal base64 character {character - 256 * (character > 127):x}")
        bits = bits << 6 | digit
    in_unit = len(digits) % 4
    padding = b"==" if in_unit == 2 else b"="
    rest = text[len(digits) :]
    if rest and (in_unit == 0 or (in_unit == 2 and not rest.startswith(padding))):
        raise ValueError("Input byte array has wrong 4-byte ending unit")
    if in_unit == 1:
        raise ValueError("Last unit does not have enough valid bits")
    if len(rest) > len(padding):
        raise ValueError(f"Input byte array has incorrect ending byte at {len(digits) + len(padding)}")
    size = len(digits) * 6 // 8
    return (bits >> len(digits) * 6 - size * 8).to_bytes(size)
