"""The loggers of this process under Kafka's names and with Kafka's levels, which can be changed at run time (KIP-412).

Owns the table of names, and the level of a name: its own, else that of its nearest ancestor with one, else root's.
Kafka's names form another tree than Python's packages, so a level is set on every affected logger. Must not know
requests, nor log handlers.

Levels belong to the process and are lost when it ends, as in Kafka.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import msgspec

from pybroker.protocol.errors import ErrorCode

ROOT = "root"
TRACE = 5
"""The number of Kafka's level TRACE, which Python's logging does not have."""

LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": TRACE,
}
"""Kafka's levels, the least verbose first."""

KAFKA_NAMES = {
    "asyncio": "asyncio",
    "pybroker": "kafka",
    "pybroker.admin": "kafka.metrics",
    "pybroker.authorizer": "kafka.authorizer.logger",
    "pybroker.broker": "kafka.server",
    "pybroker.client": "org.apache.kafka.clients",
    "pybroker.controller": "org.apache.kafka.controller",
    "pybroker.coordinator.group": "org.apache.kafka.coordinator.group",
    "pybroker.coordinator.runtime": "org.apache.kafka.coordinator.common.runtime",
    "pybroker.coordinator.transaction": "org.apache.kafka.coordinator.transaction",
    "pybroker.handlers": "kafka.server.KafkaApis",
    "pybroker.machine": "org.apache.kafka.coordinator.common.runtime.machine",
    "pybroker.metadata": "org.apache.kafka.image",
    "pybroker.net": "kafka.network",
    "pybroker.replica": "kafka.server.ReplicaManager",
    "pybroker.security": "org.apache.kafka.common.security",
    "pybroker.storage": "org.apache.kafka.storage.internals.log",
    "pybroker.storage.cleaner": "org.apache.kafka.storage.internals.log.LogCleaner",
    "pybroker.streams": "org.apache.kafka.streams",
    "pybroker.telemetry": "org.apache.kafka.server.ClientMetricsManager",
}
"""Kafka's name of each logger of this software."""

_NAMES = (ROOT, *sorted({*KAFKA_NAMES.values(), "org.apache.kafka"}))


class LevelChange(msgspec.Struct, frozen=True):
    """A change of one logger. A level of None removes the logger's own level."""

    name: str
    level: str | None


class LevelFault(NamedTuple):
    """Why a change is rejected: Kafka's error code and message."""

    code: ErrorCode
    words: str


def kafka_name(name: str) -> str:
    """Return Kafka's name of a Python logger, or its own name if Kafka has none."""
    head, tail = name, ""
    while head not in KAFKA_NAMES:
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
        if not head:
            return name
    return KAFKA_NAMES[head] + tail


def level_name(level: int) -> str:
    """Return Kafka's name of a Python level: that of the next lower level if there is no exact one."""
    return next((name for name, number in LEVELS.items() if level >= number), "TRACE")


class Loggers:
    """The levels of one process."""

    def __init__(self) -> None:
        # Invariant: each logger of KAFKA_NAMES has the level that `_given` defines for its name. `_before` has its
        # level from before.
        self._given: dict[str, int] = {}
        self._before: dict[str, int] = {}

    def levels(self) -> dict[str, str]:
        """Return the effective level of every logger, root first."""
        return {name: level_name(self._level(name)) for name in _NAMES}

    def fault(self, changes: list[LevelChange]) -> LevelFault | None:
        """Return the error of the first invalid change, None if all are valid."""
        for change in changes:
            if change.name not in _NAMES:
                return LevelFault(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
            if change.level is None and change.name == ROOT:
                return LevelFault(
                    ErrorCode.INVALID_REQUEST, f"Removing the log level of the {ROOT} logger is not allowed"
                )
            if change.level is not None and change.level not in LEVELS:
                return LevelFault(
                    ErrorCode.INVALID_CONFIG,
                    f"Cannot set the log level of {change.name} to {change.level} as it is not a supported log level. "
                    f"Valid log levels are {', '.join(sorted(LEVELS))}",
                )
        return None

    def change(self, changes: list[LevelChange]) -> None:
        """Apply changes for which `fault` returned None."""
        for change in changes:
            if change.level is None:
                self._given.pop(change.name, None)
            elif change.name == ROOT:
                logging.getLogger().setLevel(LEVELS[change.level])
            else:
                self._given[change.name] = LEVELS[change.level]
        for name, kafkas in KAFKA_NAMES.items():
            self._set(logging.getLogger(name), self._nearest(kafkas))

    def _set(self, logger: logging.Logger, level: int | None) -> None:
        if level is not None:
            self._before.setdefault(logger.name, logger.level)
            logger.setLevel(level)
        elif logger.name in self._before:
            logger.setLevel(self._before.pop(logger.name))

    def _level(self, name: str) -> int:
        return self._nearest(name) or logging.getLogger().level

    def _nearest(self, name: str) -> int | None:
        while name:
            if name in self._given:
                return self._given[name]
            name = name.rpartition(".")[0]
        return None


LOGGERS = Loggers()
"""The loggers of this process. All brokers in a process share them."""
