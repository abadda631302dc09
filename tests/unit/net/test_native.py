from __future__ import annotations

import asyncio
from pathlib import Path

from pybroker.client.administration.admin import Admin
from pybroker.config.broker import BrokerConfig
from pybroker.node import Node
from tests.support.batches import batch_of
from tests.support.wire import Wire, fetch, produce

PRODUCE, FETCH, CREATE_TOPICS = 0, 1, 19
UNKNOWN_TOPIC_OR_PARTITION = 3


def exchange(wire: Wire, request: bytes) -> tuple[int, int]:
    """Bytes of a request and of its answer, as they are on the wire."""
    wire.send_bytes(request)
    return len(request), 4 + len(wire.read_frame())


def framed(made: object) -> bytes:
    made.with_header(correlation_id=1, client_id="wire")  # type: ignore[attr-defined]
    encoded: bytes = made.encode(header=True, framed=True)  # type: ignore[attr-defined]
    return encoded


def exchange_all(bootstrap_servers: str) -> dict[int, list[tuple[int, int]]]:
    """A produce of known size, one that is refused, and two fetches; by API."""
    with Admin(bootstrap_servers) as admin, Wire(bootstrap_servers) as wire:
        admin.create_topics(["orders"])
        batch = batch_of(b"x" * 1000)
        return {
            PRODUCE: [
                exchange(wire, framed(produce("orders", batch))),
                exchange(wire, framed(produce("orders", batch, partition=7))),
            ],
            FETCH: [exchange(wire, framed(fetch("orders"))) for _ in range(2)],
        }


async def test_the_counters_have_every_request_and_every_byte(tmp_path: Path) -> None:
    node = Node(BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}))
    (listener,) = await node.start()
    try:
        exchanged = await asyncio.to_thread(exchange_all, f"127.0.0.1:{listener.bound.port}")
        counters = node.data_plane.counters()
    finally:
        await node.stop()
    apis = {api.api_key: api for api in counters.apis}
    for key, sizes in exchanged.items():
        requests, responses = zip(*sizes, strict=True)
        counted = (apis[key].requests, apis[key].in_work, apis[key].bytes_in, apis[key].bytes_out)
        assert counted == (len(sizes), 0, sum(requests), sum(responses))
    assert exchanged[FETCH][0][1] > 1000
    assert (apis[PRODUCE].errors, apis[FETCH].errors) == ({UNKNOWN_TOPIC_OR_PARTITION: 1}, {})
    assert (apis[CREATE_TOPICS].requests, apis[CREATE_TOPICS].in_work) == (1, 0)
    assert sum(processor.requests for processor in counters.processors) == sum(api.requests for api in counters.apis)
    assert sum(processor.bytes_in for processor in counters.processors) == sum(api.bytes_in for api in counters.apis)
