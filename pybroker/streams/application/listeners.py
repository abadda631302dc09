"""The functions of a program that an application calls: its listeners and its handler of failed threads."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pybroker.client.errors import BrokerError, UnservedApiError
from pybroker.protocol.errors import ErrorCode
from pybroker.streams.application.changelog_reader import RestoreProgress
from pybroker.streams.application.states import State, UncaughtResponse
from pybroker.streams.errors import StreamsError

log = logging.getLogger("pybroker.streams")

StateListener = Callable[[State, State], object]
"""`(new, old)`"""
UncaughtHandler = Callable[[BaseException], UncaughtResponse]
RestoreListener = Callable[[RestoreProgress], object]


def shut_down_client(_error: BaseException) -> UncaughtResponse:
    """Return `SHUTDOWN_CLIENT`, which is what Kafka does without a handler."""
    return UncaughtResponse.SHUTDOWN_CLIENT


class Listeners:
    """The listeners of one application. An exception of the state listener is logged, and changes nothing."""

    def __init__(self, name: str) -> None:
        """`name` is the application id."""
        self._name = name
        self.state: StateListener | None = None
        self.restore: RestoreListener | None = None
        self.uncaught: UncaughtHandler = shut_down_client

    def report_state(self, new: State, old: State) -> None:
        """Log a change of the state, and pass it to the listener."""
        log.info("Application %s changed from %s to %s", self._name, old.name, new.name)
        if self.state is None:
            return
        try:
            self.state(new, old)
        except Exception:
            # The listener runs in threads that process or stop the application, and that must complete their work.
            log.exception("The state listener of application %s failed at %s", self._name, new.name)

    def report_restored(self, progress: RestoreProgress) -> None:
        """Pass the progress of a store to the listener. An exception of it fails the thread."""
        if self.restore is not None:
            self.restore(progress)

    def decide(self, error: BaseException) -> UncaughtResponse:
        """Return the decision of the handler. A handler that fails shuts down the client."""
        try:
            response = self.uncaught(error)
        except Exception:
            log.exception("The uncaught exception handler of application %s failed", self._name)
            return UncaughtResponse.SHUTDOWN_CLIENT
        if not isinstance(response, UncaughtResponse):
            log.error(
                "The uncaught exception handler of application %s returned %r: expected an UncaughtResponse",
                *(self._name, response),
            )
            return UncaughtResponse.SHUTDOWN_CLIENT
        return response


def explained(error: BaseException) -> BaseException:
    """Return an error that names the next step where the brokers have no streams groups."""
    is_refused = isinstance(error, BrokerError) and error.code == ErrorCode.UNSUPPORTED_VERSION
    if not is_refused and not isinstance(error, UnservedApiError):
        return error
    replaced = StreamsError(
        f"the brokers have no streams groups: {error}. Use pybroker or Apache Kafka 4.2 and later, with "
        "streams.version >= 1"
    )
    replaced.__cause__ = error
    return replaced
