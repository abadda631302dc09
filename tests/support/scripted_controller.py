"""A controller with scripted responses, to test the requests of brokers.

Serves ApiVersions itself. `responses` has a function for each other API key, which returns the response, or None to
close the connection. A function may be a coroutine function, which is awaited in the order of the requests of a
connection.
"""

from __future__ import annotations

import asyncio
import inspect
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from pybroker.config.endpoint import Endpoint
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.header import RequestHeader, response_prefix, skip_tagged
from pybroker.protocol.messages import api_versions as versions
from pybroker.protocol.messages import request_class
from pybroker.protocol.schema import Message

Response = Callable[[Any], Message | Awaitable[Message | None] | None]


class ScriptedController:
    """`async with ScriptedController({63: response}) as controller`."""

    def __init__(self, responses: Mapping[int, Response], *, port: int = 0) -> None:
        self.responses = dict(responses)
        self.requested: Counter[int] = Counter()
        """The number of requests by API key."""
        self._came = asyncio.Condition()
        self.connections = 0
        """The number of opened connections."""
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        host, port = self._server.sockets[0].getsockname()
        self.endpoint = Endpoint("CONTROLLER", host, port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.die()

    async def die(self) -> None:
        """Close the listener and every connection."""
        self._server.close()
        self.drop_connections()
        for serving in list(self._serving):
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def until_requested(self, key: int, times: int) -> None:
        """Wait until `times` requests of an API have arrived."""
        async with self._came:
            await self._came.wait_for(lambda: self.requested[key] >= times)

    def drop_connections(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._writers.add(writer)
        self.connections += 1
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while True:
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    response = await self._respond(await reader.readexactly(size))
                    if response is None:
                        return
                    writer.write(struct.pack(">i", len(response)) + response)
        finally:
            writer.close()
            self._writers.discard(writer)
            self._serving.discard(task)

    async def _respond(self, frame: bytes) -> bytes | None:
        header, start = decode(RequestHeader, frame, 1)
        key, version = header.request_api_key, header.request_api_version
        if request_class(key).__message__.is_flexible(version):
            start = skip_tagged(frame, start)
        request, _ = decode(request_class(key), frame, version, start)
        async with self._came:
            self.requested[key] += 1
            self._came.notify_all()
        body = self._versions() if isinstance(request, versions.ApiVersionsRequest) else self.responses[key](request)
        if inspect.isawaitable(body):
            body = await body
        if body is None:
            return None
        return struct.pack(">i", header.correlation_id) + response_prefix(key, version) + encode(body, version)

    def _versions(self) -> Message:
        keys = [*self.responses, versions.ApiVersionsRequest.__message__.api_key]
        ranges = {key: request_class(key).__message__.versions for key in keys}
        return versions.ApiVersionsResponse(
            api_keys=[
                versions.ApiVersion(api_key=key, min_version=it.first, max_version=it.last)
                for key, it in ranges.items()
            ]
        )
