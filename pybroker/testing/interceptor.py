"""`Interceptor`: handles the requests that the data plane of a test broker stops for it.

Owns the active faults, the version limits and the recording, and sets the APIs that the data plane stops. Without
any of the three the data plane stops none, so the broker runs as in production. Decides on the broker's loop; faults
are set from any thread. Must not know how a broker starts.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from typing import TYPE_CHECKING, Any

from pybroker.handlers.registry import registered_apis
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.errors import ErrorCode, ProtocolError
from pybroker.protocol.schema import Message
from pybroker.testing.faults import Decide, Fault, Hold, Outcome, Refuse
from pybroker.testing.names import api_named, code_named
from pybroker.testing.requests import Request, RequestLog
from pybroker.testing.responses import (
    OF_SESSIONS,
    error_response,
    is_of_a_session,
    narrowed_versions,
    payload_of,
    wants_no_response,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.registry import RegisteredApi
    from pybroker.machine.clock import Clock
    from pybroker.net.native import ControlRequest, DataPlane
    from pybroker.testing.faults import Scope

log = logging.getLogger("pybroker.testing")


class Interceptor:
    """The faults of one broker, over all its starts."""

    def __init__(self, clock: Clock, recorded_at_most: int) -> None:
        self.requests = RequestLog(recorded_at_most)
        self._clock = clock
        # Guards the attributes below; held for a lookup only.
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        # Requests that are delayed until the release of a fault.
        self._held: dict[Fault, list[int]] = {}
        # Limited versions of an API, by key; None: the API is removed.
        self._limits: dict[int, tuple[int, int] | None] = {}
        self._recording = False
        # Invariant: None while the broker does not run.
        self._data_plane: DataPlane | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def attach(self, data_plane: DataPlane | None) -> None:
        """Handle the requests of a data plane from now on, None for no data plane."""
        with self._lock:
            self._data_plane = data_plane
            self._held.clear()
            self._watch()

    def record(self, wanted: bool) -> None:
        """Start or stop recording requests."""
        with self._lock:
            self._recording = wanted
            self._watch()

    def limit(self, limits: Mapping[str, tuple[int, int] | None]) -> None:
        """Limit the versions of these APIs. Raises ValueError for versions that are not served."""
        found = {}
        for name, limit in limits.items():
            api = api_named(name)
            if limit is not None and not api.min_version <= limit[0] <= limit[1] <= api.max_version:
                served = f"{api.min_version} to {api.max_version}"
                raise ValueError(f"{api.name} versions {limit[0]} to {limit[1]}; pass a range within {served}, or None")
            found[api.key] = limit
        if found.get(ApiKey.API_VERSIONS, ()) is None:
            raise ValueError("ApiVersions=None; every client sends ApiVersions first: pass a range")
        with self._lock:
            self._limits = found
            self._watch()

    def add(self, scope: Scope, outcome: Outcome | Refuse | Decide | Hold, times: int | None, delay_s: float) -> Fault:
        """Activate a fault, behind the active ones."""
        fault = Fault(scope, outcome, times, delay_s, self._changed)
        with self._lock:
            self._faults.append(fault)
            self._watch()
        return fault

    def clear(self) -> None:
        """Remove all faults and limits, and clear the recorded requests."""
        with self._lock:
            faults, self._limits = list(self._faults), {}
        for fault in faults:
            fault.remove()
        self.requests.clear()
        self.record(False)

    def _changed(self, fault: Fault) -> None:
        with self._lock:
            if not fault.active and fault in self._faults:
                self._faults.remove(fault)
                self._watch()
            released = self._held.pop(fault, []) if fault.released.is_set() else []
            data_plane = self._data_plane
        if data_plane is not None:
            for connection in released:
                data_plane.proceed(connection)

    def _watch(self) -> None:
        """Set the APIs that the data plane stops. Called with the lock held."""
        if self._data_plane is None:
            return
        keys: set[int] = set(self._limits)
        if self._limits:
            keys.add(ApiKey.API_VERSIONS)
        every = self._recording or any(fault.scope.apis is None for fault in self._faults)
        keys.update(registered_apis() if every else ())
        for fault in self._faults:
            keys.update(api.key for api in fault.scope.apis or ())
        self._data_plane.intercept(sorted(keys))

    def decide(self, event: ControlRequest, context: RequestContext) -> None:
        """Handle a request that the data plane has stopped. Called on the broker's loop."""
        data_plane, api = self._data_plane, registered_apis().get(event.api_key)
        if data_plane is None or api is None:
            return
        request = Request(event, api, context.image, self._clock.wall_ms())
        if self._recording:
            self.requests.add(request)
        try:
            if not self._within_limits(data_plane, api, request, context):
                return
            self._apply(data_plane, api, request)
        except ProtocolError:
            data_plane.proceed(request.connection)  # The broker itself rejects a request that cannot be decoded.

    def _within_limits(
        self, data_plane: DataPlane, api: RegisteredApi, request: Request, context: RequestContext
    ) -> bool:
        """Return whether a request's version is served. If not, respond as a broker of the served versions."""
        limits = self._limits
        if limits and api.key == ApiKey.API_VERSIONS:
            data_plane.respond_intercepted(request.connection, narrowed_versions(api, request, context, limits))
            return False
        limit = limits.get(api.key, (api.min_version, api.max_version))
        if limit is None or not limit[0] <= request.version <= limit[1]:
            data_plane.close_connection(request.connection)
            return False
        return True

    def _apply(self, data_plane: DataPlane, api: RegisteredApi, request: Request) -> None:
        delay_s, ending = 0.0, None
        with self._lock:
            faults = list(self._faults)
        for fault in faults:
            if not _may_concern(fault, request):
                continue
            if _needs_partitions(fault, request):
                # Only the data plane knows the partitions of the session, so the client is made to send them again.
                response = error_response(
                    api, request, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, None, fault.scope.concerns
                )
                data_plane.respond_intercepted(request.connection, payload_of(request, response))
                return
            if fault.scope.has(request) and fault.take():
                delay_s += fault.delay_s
                if fault.outcome is not Outcome.PROCEED:
                    ending = fault
                    break
        if delay_s:
            asyncio.get_running_loop().call_later(delay_s, self._end, api, request, ending)
        else:
            self._end(api, request, ending)

    def _end(self, api: RegisteredApi, request: Request, fault: Fault | None) -> None:
        data_plane, connection = self._data_plane, request.connection
        outcome = Outcome.PROCEED if fault is None else fault.outcome
        if data_plane is None:
            return
        if isinstance(outcome, Refuse) and fault is not None:
            self._refuse(data_plane, api, request, outcome, fault.scope.concerns)
        elif isinstance(outcome, Decide) and fault is not None:
            self._query(api, request, outcome, fault)
        elif isinstance(outcome, Hold) and fault is not None:
            with self._lock:
                waits = not fault.released.is_set()
                if waits:
                    self._held.setdefault(fault, []).append(connection)
            if not waits:
                data_plane.proceed(connection)
        elif isinstance(outcome, Outcome):
            _send(data_plane, connection, outcome)

    def _refuse(
        self,
        data_plane: DataPlane,
        api: RegisteredApi,
        request: Request,
        refusal: Refuse,
        concerns: Callable[[str, int], bool],
    ) -> None:
        if wants_no_response(request):
            # As Kafka does: the client has no other indication of the error.
            data_plane.close_connection(request.connection)
            return
        response = error_response(api, request, refusal.code, refusal.message, concerns)
        data_plane.respond_intercepted(request.connection, payload_of(request, response))

    def _query(self, api: RegisteredApi, request: Request, requested: Decide, fault: Fault) -> None:
        """Have the test's function decide, at once or, for a coroutine function, when it completes."""

        async def query() -> None:
            try:
                decision = requested.function(request)
                if inspect.isawaitable(decision):
                    decision = await decision
                self._carry_out(api, request, decision)
            except Exception as error:  # any exception is reported to the test
                log.exception("The interceptor failed for %r; its connection is closed", request)
                fault.failed(error)
                if self._data_plane is not None:
                    self._data_plane.close_connection(request.connection)

        task = asyncio.get_running_loop().create_task(query())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _carry_out(self, api: RegisteredApi, request: Request, decision: Any) -> None:
        data_plane = self._data_plane
        if data_plane is None:
            return
        if isinstance(decision, Message):
            data_plane.respond_intercepted(request.connection, payload_of(request, decision))
        elif isinstance(decision, int | str):
            self._refuse(data_plane, api, request, Refuse(code_named(decision), None), lambda _topic, _index: True)
        elif decision is None or isinstance(decision, Outcome):
            _send(data_plane, request.connection, decision or Outcome.PROCEED)
        else:
            raise TypeError(
                f"{decision!r} is not a decision; return None, an Outcome, an error code, or the response's message"
            )


def _send(data_plane: DataPlane, connection: int, outcome: Outcome) -> None:
    if outcome is Outcome.PROCEED:
        data_plane.proceed(connection)
    elif outcome is Outcome.DISCONNECT:
        data_plane.close_connection(connection)
    elif outcome is not Outcome.SILENCE:
        data_plane.proceed_unanswered(connection, close=outcome is Outcome.DISCONNECT_AFTER)


def _may_concern(fault: Fault, request: Request) -> bool:
    apis = fault.scope.apis
    return fault.active and (apis is None or any(api.key == request.api_key for api in apis))


def _needs_partitions(fault: Fault, request: Request) -> bool:
    """Return whether a fault's effect is unknown, since a Fetch omits the partitions of its session."""
    if not is_of_a_session(request):
        return False
    outcome = fault.outcome
    return fault.scope.topic is not None or (isinstance(outcome, Refuse) and outcome.code not in OF_SESSIONS)
