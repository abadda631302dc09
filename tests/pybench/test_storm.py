"""Storms: every API has its request, and the report shows what was waited beside each."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from pybench import report
from pybench.storm_load import PART, SERVED_BY_ALL
from pybench.storm_requests import Fields, frame, storms
from pybroker.handlers.registry import registered_apis
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.codec import decode
from pybroker.protocol.header import RequestHeader, flexible
from pybroker.testing import Broker
from tests.support.wire import Wire


def test_every_api_that_is_served_has_a_storm() -> None:
    assert {ApiKey[name] for name in storms()} == registered_apis().keys()


@pytest.mark.parametrize(("name", "version", "fields"), [(name, *storm) for name, storm in storms().items()])
def test_a_frame_says_what_it_was_made_of(name: str, version: int, fields: Fields) -> None:
    whole = frame(name, version, fields)
    api = registered_apis()[ApiKey[name]]
    assert struct.unpack_from(">ihh", whole) == (len(whole) - 4, api.key, version)
    assert api.min_version <= version <= api.max_version
    header_version = 2 if flexible(api.key, version) else 1
    _, offset = decode(RequestHeader, whole[4:], header_version)
    request, _ = decode(api.request_type, whole[4:], version, offset)
    sent = {field: getattr(request, field) for field in fields}
    assert all(len(sent[field]) == len(value) for field, value in fields.items() if isinstance(value, list))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(properties=SERVED_BY_ALL) as running:
        yield running


def test_every_storm_is_answered_by_a_broker(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=["storm"])
        for name, (version, fields) in storms().items():
            wire.send_bytes(frame(name, version, fields))
            responded = struct.unpack_from(">i", wire.read_frame())
            assert responded == (7,), name


def test_the_report_shows_each_parts_waits_and_the_ratio_of_the_longest() -> None:
    def rounds(*longest: float) -> dict[str, list[dict[str, float]]]:
        return {
            "rounds": [
                {
                    "seconds": 1.0,
                    f"METADATA{PART}max_ms": one,
                    f"METADATA{PART}p99_ms": 1.0,
                    f"METADATA{PART}storm_ms": 5.0,
                }
                for one in longest
            ]
        }

    lines = list(report.parts({"pybroker": rounds(2.0, 4.0, 3.0), "Apache Kafka": rounds(6.0)}))
    assert "| METADATA | 3.0 | 1.0 | 5.0 | 6.0 | 1.0 | 5.0 | 0.50 |" in lines
    assert list(report.parts({"pybroker": {"rounds": [{"seconds": 1.0}]}})) == []
