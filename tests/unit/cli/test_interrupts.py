from __future__ import annotations

import signal
import threading

import pytest

from pybroker.cli import interrupts
from pybroker.cli.interrupts import Interrupts

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_raises_at_once_and_gives_the_status(number: signal.Signals, status: int) -> None:
    before = signal.getsignal(number)
    with Interrupts() as arrived:
        assert not arrived.arrived
        assert arrived.status == 0
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        assert arrived.arrived
        assert arrived.status == status
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_that_is_held_is_noted_and_the_next_one_raises(number: signal.Signals, status: int) -> None:
    with Interrupts() as arrived:
        with arrived.held():
            signal.raise_signal(number)
            assert arrived.status == status
        with arrived.held(), pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


def test_a_signal_that_is_held_does_not_wait_for_a_call_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_PATIENCE_S", 0.01)
    before = signal.getsignal(signal.SIGALRM)
    with Interrupts() as arrived:
        with pytest.raises(KeyboardInterrupt):
            wait_for_ever(arrived)
        assert arrived.status == 143
    assert signal.getsignal(signal.SIGALRM) is before


def test_every_signal_is_only_noted_where_they_are_ignored() -> None:
    with Interrupts() as arrived:
        with arrived.ignored():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
        assert arrived.status == 130


def wait_for_ever(arrived: Interrupts) -> None:
    with arrived.held():
        signal.raise_signal(signal.SIGTERM)
        threading.Event().wait()
