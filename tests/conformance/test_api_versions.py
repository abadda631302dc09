"""ApiVersions: how a client finds out what it may say (KIP-35, KIP-511)."""

from __future__ import annotations

import struct

import pytest

from tests.conformance.conftest import AGAINST_KAFKA
from tests.support.wire import Wire, header

#: The ranges of Apache Kafka 4.3 for what a broker serves to clients; Produce is advertised from 0 (KAFKA-18659). Fetch
#: and ListOffsets are served here from 0 on, as they were until Kafka 3.
KAFKA_RANGES = {
    0: (0, 13),
    1: (4 if AGAINST_KAFKA else 0, 18),
    2: (1 if AGAINST_KAFKA else 0, 11),
    3: (0, 13),
    10: (0, 6),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    22: (0, 5),
    32: (1, 4),
    60: (0, 2),
}


@pytest.mark.parametrize("version", range(5))
def test_ranges_are_kafkas(wire: Wire, version: int) -> None:
    response = wire.call("ApiVersions", version, client_software_name="wire", client_software_version="1")
    assert response.error_code == 0
    served = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert {key: served.get(key) for key in KAFKA_RANGES} == KAFKA_RANGES


@pytest.mark.parametrize("version", range(5))
def test_telemetry_apis_are_not_offered_without_a_receiver(wire: Wire, version: int) -> None:
    """GetTelemetrySubscriptions and PushTelemetry (KIP-714)."""
    response = wire.call("ApiVersions", version, client_software_name="wire", client_software_version="1")
    assert not {71, 72} & {api.api_key for api in response.api_keys}


def test_a_version_above_the_range_is_answered_in_version_0_with_the_range(wire: Wire) -> None:
    wire.send_frame(header(18, 99, 7, flexible=True) + b"\x02x\x02y\x00")
    frame = wire.read_frame()
    correlation_id, error_code, count = struct.unpack_from(">ihi", frame)
    assert (correlation_id, error_code) == (7, 35)
    apis = [struct.unpack_from(">hhh", frame, 10 + 6 * index) for index in range(count)]
    assert len(frame) == 10 + 6 * count, "version 0 ends after the array"
    assert {key: (lowest, highest) for key, lowest, highest in apis}[18] == KAFKA_RANGES[18]


def test_the_connection_goes_on_after_a_version_that_was_too_high(wire: Wire) -> None:
    wire.send_frame(header(18, 99, 7, flexible=True) + b"\x02x\x02y\x00")
    wire.read_frame()
    assert wire.call("ApiVersions", 3, client_software_name="wire", client_software_version="1").error_code == 0


def test_the_response_header_of_a_flexible_version_has_no_tagged_fields(wire: Wire) -> None:
    wire.send_frame(header(18, 3, 9, flexible=True) + b"\x05wire\x021\x00")
    correlation_id, error_code = struct.unpack_from(">ih", wire.read_frame())
    assert (correlation_id, error_code) == (9, 0)


@pytest.mark.parametrize("name", [b"", b"with space", b"-dash"])
def test_a_client_name_that_cannot_be_shown_is_an_invalid_request(wire: Wire, name: bytes) -> None:
    wire.send_frame(header(18, 3, 9, flexible=True) + bytes([len(name) + 1]) + name + b"\x021\x00")
    correlation_id, error_code = struct.unpack_from(">ih", wire.read_frame())
    assert (correlation_id, error_code) == (9, 42)
