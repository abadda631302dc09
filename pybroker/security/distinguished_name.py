"""Reads the subject and the expiry of a certificate from DER.

Owns the text form of a certificate's owner, which is that of Java's `X500Principal.getName()`. Must not validate
certificates: that is done during the handshake.

Source: RFC 5280, 4.1; RFC 2253; Java's `sun.security.x509.AVA`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEQUENCE, _OID, _UTC_TIME, _VERSION = 0x30, 0x06, 0x17, 0xA0
_TAG_BITS, _LONG = 0x1F, 0x80
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_STRINGS = {0x0C: "utf-8", 0x13: "latin-1", 0x14: "latin-1", 0x16: "latin-1", 0x1B: "latin-1", 0x1E: "utf-16-be"}
_LONGEST_TYPE = 256
"""Maximum bytes of an attribute type's OID: parsing takes more than linear time."""
_ESCAPED = frozenset(',=+<>#;"\\')


class CertificateError(ValueError):
    """The bytes are no X.509 certificate."""


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate (DER) as Java does: `CN=alice,OU=readers,O=Example`.

    The last component comes first. A type without a keyword of RFC 2253 is written as its OID, with its value in
    hexadecimal DER. Raises CertificateError.
    """
    relative = list(_items(_fields(certificate)[1]))
    return ",".join("+".join(_attribute(value) for _, value in _items(parts)) for _, parts in reversed(relative))


def valid_until(certificate: bytes) -> datetime:
    """Return the expiry of a certificate (DER). Raises CertificateError."""
    (_, _), (tag, until) = list(_items(_fields(certificate)[0]))[:2]
    form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    try:
        return datetime.strptime(until.decode("ascii"), form).replace(tzinfo=UTC)
    except ValueError as error:
        raise CertificateError(str(error)) from None


def _fields(certificate: bytes) -> tuple[bytes, bytes]:
    """Return the DER content of the validity and of the subject."""
    outer = next(_items(certificate), (0, b""))[1]
    signed = [item for item in _items(next(_items(outer), (0, b""))[1]) if item[0] != _VERSION]
    try:
        (_, _), (_, _), (_, _), (validity_tag, validity), (subject_tag, subject) = signed[:5]
    except ValueError:
        raise CertificateError("bad certificate: fields are missing") from None
    if (validity_tag, subject_tag) != (_SEQUENCE, _SEQUENCE):
        raise CertificateError("bad certificate: unexpected fields")
    return validity, subject


def _items(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of each value."""
    for tag, begin, end, _ in _spans(der):
        yield tag, der[begin:end]


def _spans(der: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the tag of each value, the start and end of its content, and the start of the value."""
    at = 0
    while at < len(der):
        start = at
        if len(der) < at + 2 or der[at] & _TAG_BITS == _TAG_BITS:
            raise CertificateError("bad certificate: a value is truncated")
        tag, length, at = der[at], der[at + 1], at + 2
        if length & _LONG:
            size = length ^ _LONG
            length, at = int.from_bytes(der[at : at + size]), at + size
        if at + length > len(der):
            raise CertificateError("bad certificate: a value is truncated")
        yield tag, at, at + length, start
        at += length


def _attribute(der: bytes) -> str:
    spans = list(_spans(der))
    if [tag for tag, _, _, _ in spans[:1]] != [_OID] or len(spans) < 2:
        raise CertificateError("bad certificate: an attribute of its subject lacks its type or its value")
    (_, begin, end, _), (tag, value_begin, value_end, value_start) = spans[:2]
    number = _number(der[begin:end])
    keyword, encoding = _KEYWORDS.get(number), _STRINGS.get(tag)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{der[value_start:value_end].hex()}"
    try:
        return f"{keyword}={_escaped(der[value_begin:value_end].decode(encoding))}"
    except UnicodeDecodeError:
        raise CertificateError("bad certificate: a string of its subject is malformed") from None


def _number(content: bytes) -> str:
    if len(content) > _LONGEST_TYPE:
        raise CertificateError(f"bad certificate: a type of its subject has {len(content)} bytes, not {_LONGEST_TYPE}")
    values, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            values.append(value)
            value = 0
    if not values:
        raise CertificateError("bad certificate: a type of its subject has no number")
    first = min(values[0] // 40, 2)
    return ".".join(map(str, (first, values[0] - 40 * first, *values[1:])))


def _escaped(text: str) -> str:
    inner = text.strip(" \r")
    if not inner:
        return "".join("\\" + sign for sign in text)
    begin = text.index(inner)
    escaped = "".join("\\" + sign if sign in _ESCAPED else "\\00" if sign == "\0" else sign for sign in inner)
    around = ("".join("\\" + sign for sign in part) for part in (text[:begin], text[begin + len(inner) :]))
    return next(around) + escaped + next(around)
