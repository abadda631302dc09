"""Kafka's two SCRAM mechanisms, and the range of iterations.

Separate from the formulas, whose hash functions most users of a mechanism's name never need to load. Must not know
the formulas.

Source: RFC 7677, Kafka's ScramMechanism.
"""

from __future__ import annotations

import msgspec


class ScramMechanism(msgspec.Struct, frozen=True):
    """One of the two mechanisms."""

    name: str
    number: int
    """The number in Kafka's records and requests."""
    digest: str
    """Python's name of the hash function."""


SCRAM_SHA_256 = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SCRAM_SHA_512 = ScramMechanism("SCRAM-SHA-512", 2, "sha512")
SCRAM_BY_NAME = {one.name: one for one in (SCRAM_SHA_256, SCRAM_SHA_512)}
SCRAM_BY_NUMBER = {one.number: one for one in (SCRAM_SHA_256, SCRAM_SHA_512)}

LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 16384
