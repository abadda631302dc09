"""`Request`, a request received by a test broker, and `RequestLog`, the recorded requests.

Owns the bounds of the log, and the topics, partitions and groups of a request, found in the decoded message. Must
not know how a request is handled.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pybroker.metadata.image import TOPIC_RESOURCE
from pybroker.protocol.codec import schema_of
from pybroker.protocol.header import flexible
from pybroker.protocol.schema import ZERO_UUID
from pybroker.testing.arguments import checked
from pybroker.testing.names import api_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pybroker.handlers.registry import RegisteredApi
    from pybroker.metadata.image import MetadataImage
    from pybroker.net.native import ControlRequest

# The traceback of an invalid call ends at the line of the test.
__tracebackhide__ = True

_TOPIC_FIELDS = ("topics", "topic_data", "topic_names", "topic_partitions", "subscribed_topic_names")
_PARTITION_FIELDS = ("partitions", "partition_data", "partition_indexes")
_GROUP_FIELDS = ("group_id", "groups", "groups_names", "group_ids")
_GROUP_KEY_TYPE = 0  # FindCoordinator's key type of a group


class Request:
    """One request, as its client sent it."""

    def __init__(self, event: ControlRequest, api: RegisteredApi, image: MetadataImage, time_ms: int) -> None:
        """Decode nothing yet: the message is decoded on first access."""
        self._event = event
        self._api = api
        self._image = image
        self.time_ms = time_ms
        """Arrival time, ms since 1970 by the broker's clock."""

    def __repr__(self) -> str:
        return f"<{self.api} v{self.version} from {self.client_id!r} at {self.peer}>"

    @property
    def api(self) -> str:
        """Return Kafka's name of the API, such as "Produce"."""
        return self._api.name

    @property
    def api_key(self) -> int:
        """Return the API key."""
        return self._event.api_key

    @property
    def version(self) -> int:
        """Return the version of the API."""
        return self._event.api_version

    @property
    def client_id(self) -> str | None:
        """Return the client id."""
        return self._event.client_id

    @property
    def correlation_id(self) -> int:
        """Return the correlation id."""
        return self._event.correlation_id

    @property
    def connection(self) -> int:
        """Return the number of its connection, unique during the broker's lifetime."""
        return self._event.connection

    @property
    def peer(self) -> str:
        """Return the address of the client as host:port."""
        return f"{self._event.peer_host}:{self._event.peer_port}"

    @cached_property
    def message(self) -> Any:
        """Return the decoded message, such as a `ProduceRequest`. Raises MalformedMessage for an undecodable one."""
        version_is_flexible = flexible(self.api_key, self.version)
        return self._event.decode(schema_of(self._api.request_type), version_is_flexible, sys.maxsize)

    @cached_property
    def partitions(self) -> Mapping[str, frozenset[int]]:
        """Return the partition indexes in the request, by topic; none for a topic without partitions."""
        found: dict[str, frozenset[int]] = {}
        named = [self.message, *_values(self.message, "groups")]
        for holder in named:
            for field in _TOPIC_FIELDS:
                for topic in _values(holder, field):
                    name = self.name_of(topic)
                    if name is not None:
                        found[name] = found.get(name, frozenset()) | _partitions_of(topic)
        for resource in _values(self.message, "resources"):
            if resource.resource_type == TOPIC_RESOURCE:
                found.setdefault(resource.resource_name, frozenset())
        return found

    @property
    def topics(self) -> frozenset[str]:
        """Return the names of its topics, which the request contains by name or by id."""
        return frozenset(self.partitions)

    @cached_property
    def groups(self) -> frozenset[str]:
        """Return the ids of its groups."""
        found: set[str] = set()
        for field in _GROUP_FIELDS:
            value = getattr(self.message, field, None)
            for one in (value,) if isinstance(value, str) else value or ():
                found.add(one if isinstance(one, str) else one.group_id)
        if self.api == "FindCoordinator" and self.message.key_type == _GROUP_KEY_TYPE:
            found.update(self.message.coordinator_keys or (), (self.message.key,))
        return frozenset(found - {""})

    def name_of(self, topic: Any) -> str | None:
        """Return the name of a topic in the message, also from its id; None for an unknown id."""
        if isinstance(topic, str):
            return topic
        name = getattr(topic, "name", None) or getattr(topic, "topic", None) or getattr(topic, "topic_name", None)
        topic_id = getattr(topic, "topic_id", ZERO_UUID)
        if name or topic_id == ZERO_UUID:
            return name
        known = self._image.topics.by_id.get(topic_id)
        return None if known is None else known.name


def _values(holder: Any, field: str) -> list[Any]:
    """Return the items of a list field; none where it is null or does not exist."""
    value = getattr(holder, field, None)
    return value if isinstance(value, list) else []


def _partitions_of(topic: Any) -> frozenset[int]:
    items = [item for field in _PARTITION_FIELDS for item in _values(topic, field)]
    return frozenset(item if isinstance(item, int) else _index(item) for item in items)


def _index(partition: Any) -> int:
    for field in ("partition_index", "index", "partition"):
        found = getattr(partition, field, None)
        if found is not None:
            return int(found)
    raise AssertionError(f"{type(partition).__name__} has no index")


def names_topics(api: RegisteredApi) -> bool:
    """Return whether requests of an API may contain topics."""
    fields = api.request_type.__struct_fields__
    return not {*_TOPIC_FIELDS, "resources"}.isdisjoint(fields)


def names_groups(api: RegisteredApi) -> bool:
    """Return whether requests of an API may contain groups."""
    return api.name == "FindCoordinator" or not {*_GROUP_FIELDS}.isdisjoint(api.request_type.__struct_fields__)


class RequestLog:
    """The last recorded requests, the oldest first. Any thread may read them."""

    def __init__(self, at_most: int) -> None:
        """Keep at most `at_most` requests; older ones are dropped and counted."""
        self._requests: deque[Request] = deque(maxlen=at_most)
        self._changed = threading.Condition()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        with self._changed:
            return iter(list(self._requests))

    def __getitem__(self, at: int) -> Request:
        with self._changed:
            return self._requests[at]

    @property
    def dropped(self) -> int:
        """Return the number of requests that were dropped because the log was full."""
        return self._dropped

    @checked
    def of(self, *apis: str) -> list[Request]:
        """Return the requests of these APIs, by Kafka's names. Raises ValueError for an unknown name."""
        names = [api_named(name).name for name in apis]
        return [request for request in self if request.api in names]

    def clear(self) -> None:
        """Remove the recorded requests."""
        with self._changed:
            self._requests.clear()

    def add(self, request: Request) -> None:
        """Record a request."""
        with self._changed:
            self._dropped += len(self._requests) == self._requests.maxlen
            self._requests.append(request)
            self._changed.notify_all()

    @checked
    def wait_for(
        self, api: str, count: int = 1, *, timeout: float = 10, where: Callable[[Request], bool] = lambda _: True
    ) -> list[Request]:
        """Wait until `count` requests of an API that satisfy `where` are recorded, and return them all.

        Raises TimeoutError after `timeout` seconds, with the requests that arrived. It blocks: in an event loop use
        `await asyncio.to_thread(requests.wait_for, "Produce")`.
        """
        ends = time.monotonic() + timeout
        api = api_named(api).name
        with self._changed:
            while True:
                found = [request for request in self._requests if request.api == api and where(request)]
                if len(found) >= count:
                    return found
                if not self._changed.wait(ends - time.monotonic()) and time.monotonic() >= ends:
                    arrived = sorted({request.api for request in self._requests})
                    raise TimeoutError(
                        f"{len(found)} of {count} {api} requests arrived within {timeout} s; recorded: {arrived}"
                    )
