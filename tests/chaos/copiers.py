"""Programs that copy a topic in transactions, each on another client, and how they are started.

Owns their command lines and what they make of a value. Must not know what befalls them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from pybench.peers import java
from tests.support import programs
from tests.support.franz import franz_program

_MESSAGE_COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"


class Work(NamedTuple):
    """What a copier is to do."""

    bootstrap: str
    group: str
    source: str
    target: str
    transactional_id: str


class Kind(NamedTuple):
    """A program."""

    command: Callable[[Work], list[str]]
    """Its command line; skips the test (in CI some: fails it) where what it needs is missing."""
    transform: Callable[[str], str]
    """What it writes of a value."""


def _python(module: str) -> Callable[[Work], list[str]]:
    return lambda work: [sys.executable, "-m", module, *work]


def _java(work: Work) -> list[str]:
    """Kafka's own, which copies values as they are, and aborts some transactions for no reason."""
    programs.kafka_tools()
    return [
        *java.short_java_command(_MESSAGE_COPIER),
        *("--broker-list", work.bootstrap, "--consumer-group", work.group),
        *("--input-topic", work.source, "--input-partition", "-1", "--output-topic", work.target),
        *("--transactional-id", work.transactional_id, "--transaction-timeout", "10000", "--transaction-size", "50"),
        *("--group-mode", "--use-group-metadata", "--enable-random-aborts"),
    ]


def _franz(work: Work) -> list[str]:
    return [franz_program("copier"), *work]


KINDS = {
    "librdkafka": Kind(_python("tests.chaos.copier"), str.upper),
    "pybroker": Kind(_python("tests.chaos.client_copier"), str.upper),
    "java": Kind(_java, str),
    "franz-go": Kind(_franz, str.upper),
}
