"""How long a call may take and when it is tried again, as arithmetic."""

from __future__ import annotations

import pytest

from pybroker.client.errors import (
    BrokerError,
    ClientError,
    ConnectionLostError,
    SettingError,
    UnreachableError,
    UnservedApiError,
)
from pybroker.client.network.retry_budget import JITTER, Backoff, RetryBudget, is_retriable
from pybroker.client.settings import ConnectionSettings
from pybroker.protocol.errors import ErrorCode

BACKOFF = Backoff(100, 1_000)


def test_the_defaults_are_kafkas() -> None:
    settings = ConnectionSettings.from_properties({"bootstrap.servers": "h:1"})
    assert (settings.default_api_timeout_ms, settings.request_timeout_ms) == (60_000, 30_000)
    assert Backoff.of(settings) == BACKOFF


def test_pauses_double_up_to_the_most() -> None:
    assert [BACKOFF.after(failures, 0) for failures in (1, 2, 3, 4, 5, 99)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_jitter_moves_a_pause_by_a_fifth_and_never_above_the_most() -> None:
    assert [round(BACKOFF.after(1, jitter), 3) for jitter in (-JITTER, JITTER)] == [0.08, 0.12]
    assert BACKOFF.after(9, JITTER) == 1.0


def test_a_first_pause_above_the_most_is_the_most() -> None:
    assert [Backoff(5_000, 1_000).after(failures, 0) for failures in (1, 2)] == [1.0, 1.0]


def test_a_budget_is_over_when_there_is_no_time_for_another_try() -> None:
    budget = RetryBudget(BACKOFF, 1_000, "default.api.timeout.ms", began=5.0)
    assert budget.step_failed(5.5, 0) == 0.1
    assert (budget.step_failed(5.9, 0), budget.is_over) == (None, True)


def test_the_end_names_the_last_failure_and_the_real_time() -> None:
    budget = RetryBudget(BACKOFF, 60_000, "default.api.timeout.ms", began=1.0)
    assert budget.step_failed(2.0, 0) is not None
    ended = budget.spent(ConnectionLostError("127.0.0.1:1: refused"), 3.2)
    assert isinstance(ended, UnreachableError)
    assert str(ended) == "no broker answered: 127.0.0.1:1: refused; 1 try in 2200 ms (default.api.timeout.ms=60000)"


def test_a_refusal_stays_what_it_is_at_the_end() -> None:
    budget = RetryBudget(BACKOFF, 10, "timeout_ms", began=0.0)
    for now in (0.0, 0.005):
        budget.step_failed(now, 0)
    ended = budget.spent(BrokerError.of("h:1", "topic 't'", ErrorCode.NOT_LEADER_OR_FOLLOWER, None), 0.01)
    assert isinstance(ended, BrokerError)
    assert (ended.code, ended.meaning) == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER.message,
    )
    assert str(ended).endswith("2 tries in 10 ms (timeout_ms=10)")


def test_a_call_is_warned_of_once_after_a_second() -> None:
    budget = RetryBudget(BACKOFF, 60_000, "default.api.timeout.ms", began=0.0)
    lost = ConnectionLostError("h:1: refused")
    assert budget.maybe_warn(lost, 0.9) is None
    assert budget.maybe_warn(lost, 2.0) == "h:1: refused; trying again for 58 s (default.api.timeout.ms=60000)"
    assert budget.maybe_warn(lost, 3.0) is None


@pytest.mark.parametrize("code", list(ErrorCode))
def test_a_code_is_tried_again_where_kafka_calls_it_retriable(code: ErrorCode) -> None:
    assert is_retriable(BrokerError.of("h:1", "topic 't'", code, None)) is code.retriable


@pytest.mark.parametrize(
    ("failure", "again"),
    [
        (ConnectionLostError("h:1: closed"), True),
        (UnreachableError("no broker answered"), True),
        (UnservedApiError("h:1 serves API 3 in versions 0-1"), False),
        (SettingError("acks=2"), False),
    ],
)
def test_a_lost_connection_is_tried_again_and_a_mistake_is_not(failure: ClientError, again: bool) -> None:
    assert is_retriable(failure) is again


def test_an_answer_that_stays_the_same_is_not_asked_for_again() -> None:
    missing = BrokerError.of("h:1", "topic 't'", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    missing.final = True
    assert not is_retriable(missing)
