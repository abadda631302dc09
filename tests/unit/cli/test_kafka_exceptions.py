"""The names and words of Kafka's exceptions, checked by Kafka's own clients."""

from __future__ import annotations

import pytest

from pybroker.cli.kafka_exceptions import _MESSAGES, java_class, java_message, java_text
from pybroker.client.errors import BrokerError, UnreachableError
from pybroker.protocol.errors import ErrorCode
from tests.support import java_oracle


@pytest.mark.java
def test_every_error_code_has_kafkas_exception_and_words() -> None:
    with java_oracle.running("ErrorOracle") as oracle:
        theirs = {int(code): oracle.query("name", code=int(code)) for code in ErrorCode if code}
    assert {code: java_class(ErrorCode(code)) for code in theirs} == {c: one["class"] for c, one in theirs.items()}
    assert {code: java_message(code) for code in _MESSAGES} == {code: theirs[code]["message"] for code in _MESSAGES}


def test_the_words_that_came_take_precedence_over_kafkas_own() -> None:
    code = ErrorCode.KAFKA_STORAGE_ERROR
    kind = "org.apache.kafka.common.errors.KafkaStorageException"
    assert java_text(BrokerError.of("h:1", "t", code, "gone")) == f"{kind}: gone"
    assert java_text(BrokerError.of("h:1", "t", code, None)) == (
        f"{kind}: Disk error when trying to access log file on the disk."
    )


def test_a_failure_without_an_error_code_is_reported_as_it_is() -> None:
    assert java_text(UnreachableError("no broker answered")) == "no broker answered"
