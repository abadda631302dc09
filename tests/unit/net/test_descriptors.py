from __future__ import annotations

import logging
import resource

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.net import descriptors
from pybroker.net.descriptors import Shares, TooFewDescriptorsError


def with_limit(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int = 1 << 20) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))


@pytest.mark.parametrize("limit", [128, 256, 1024, 4096, 20_000, 1 << 20])
def test_connections_files_and_the_rest_fit_the_limit(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    with_limit(monkeypatch, limit)
    shares = descriptors.divide()
    rest = limit - shares.connections - shares.log_files
    assert rest >= 64 + limit // 16
    assert shares.connections == shares.log_files > limit // 6


def test_without_a_limit_there_is_room_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with_limit(monkeypatch, resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert descriptors.divide().connections > 1 << 28


def test_a_limit_that_leaves_no_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with_limit(monkeypatch, 127, 127)
    with pytest.raises(TooFewDescriptorsError, match=r"RLIMIT_NOFILE is 127 .* at least 128"):
        descriptors.divide()


def test_the_smaller_of_setting_and_share_holds_and_says_why() -> None:
    shares = Shares(1024, 448, 448)
    assert descriptors.connections_allowed(shares, 100) == (100, "max.connections")
    assert descriptors.connections_allowed(shares, 10_000) == (448, "the share of RLIMIT_NOFILE=1024 for connections")


@pytest.mark.parametrize(
    ("limit", "given", "partitions", "words"),
    [
        (20_000, {}, 1000, None),
        (1024, {}, 0, "the limit is low for a broker"),
        (20_000, {"max.connections": "15000"}, 0, "max.connections=15000 cannot be reached"),
        (20_000, {"max.connections": "100"}, 0, None),
        (20_000, {}, 18_000, "18000 partitions need as many"),
    ],
)
def test_a_limit_that_is_small_for_the_load_is_warned_of(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limit: int,
    given: dict[str, str],
    partitions: int,
    words: str | None,
) -> None:
    with_limit(monkeypatch, limit)
    with caplog.at_level(logging.INFO):
        descriptors.report(descriptors.divide(), BrokerConfig(given), partitions)
    (line,) = caplog.records
    assert line.levelno == (logging.INFO if words is None else logging.WARNING)
    assert (words or "RLIMIT_NOFILE is 20000: at most") in line.message


def test_the_soft_limit_is_raised_to_the_hard_one(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    with_limit(monkeypatch, 1024, 4096)
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: raised.append(limits))
    descriptors.raise_limit()
    assert raised == [(4096, 4096)]
