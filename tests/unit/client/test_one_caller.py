"""One caller at a time, as KafkaConsumer's acquire demands; and `close` from another thread, task or listener."""

from __future__ import annotations

import asyncio
import gc
import inspect
import queue
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from pybroker.client import (
    Admin,
    AsyncConsumer,
    AsyncFetcher,
    AsyncProducer,
    ClientError,
    ClosedError,
    ColumnFetcher,
    ConcurrentAccessError,
    Consumer,
    ConsumeTransformProduce,
    Fetcher,
    NewTopic,
    Producer,
    RebalanceListener,
    TopicPartition,
)
from pybroker.client.one_caller import FREE_CALLS
from pybroker.testing import Broker
from tests.support.conditions import wait_until

WITHIN = 60
RECORDS = 200
FULL, EMPTY = TopicPartition("full", 0), TopicPartition("empty", 0)
FREE = {*FREE_CALLS, "settings", "native"}
LOAD = {"take_arrivals"}
"""What load generation calls from a thread of its own."""
LOOPS_THREAD = {"make_due", "poll_here", "format_here", "next_ahead", "interrupt"}
"""What `Consumer` calls of its AsyncConsumer from its own thread."""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("full", 1, 1), NewTopic("empty", 1, 1), NewTopic("grouped", 2, 1)])
            for topic in ("full", "empty", "grouped"):
                admin.wait_for_leaders(topic)
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(RECORDS):
                producer.send("full", b"%d" % number)
        yield broker.bootstrap_servers


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def methods(kind: type) -> list[str]:
    """The public methods of a class that one caller at a time may call."""
    names = [name for name in dir(kind) if not name.startswith("_") and inspect.isfunction(getattr(kind, name))]
    return [name for name in names if name not in FREE | LOOPS_THREAD | LOAD]


def is_inside(client: Any) -> bool:
    """Whether another thread is inside of a blocking client."""
    if client._calls.lock.acquire(False):
        client._calls.lock.release()
        return False
    return True


def waits(client: Any, call: Callable[[], Any], threads: ThreadPoolExecutor) -> Future[Any]:
    """A call in another thread that is under way."""
    future = threads.submit(call)
    wait_until(lambda: is_inside(client), within=WITHIN, what="the call is not under way")
    return future


async def in_progress(call: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A call of another task that has begun."""
    task = asyncio.ensure_future(call)
    await asyncio.wait([task], timeout=0)
    return task


@pytest.mark.parametrize("kind", [Consumer, Fetcher])
def test_a_second_thread_gets_the_error_of_every_method_and_the_first_one_its_records(
    servers: str, threads: ThreadPoolExecutor, kind: Any
) -> None:
    with kind(servers, {"auto.offset.reset": "latest"}) as client, Producer(servers) as producer:
        client.assign([EMPTY])
        first = waits(client, lambda: client.poll(WITHIN), threads)
        for name in methods(kind):
            with pytest.raises(ConcurrentAccessError, match=rf"{kind.__name__} is not safe .* called {name} during"):
                getattr(client, name)()
        wait_until(lambda: client.metrics()["fetch-total"] > 0, within=WITHIN, what="nothing was fetched")
        producer.send("empty", b"once")
        assert [record.value for record in first.result(WITHIN)] == [b"once"]
        client.assign([FULL])


def test_a_column_fetcher_and_a_copier_refuse_a_second_thread_too(servers: str, threads: ThreadPoolExecutor) -> None:
    with ColumnFetcher(servers, {"auto.offset.reset": "latest"}) as fetcher:
        fetcher.assign([EMPTY])
        first = waits(fetcher, lambda: fetcher.take(WITHIN), threads)
        for name in methods(ColumnFetcher):
            with pytest.raises(ConcurrentAccessError, match=f"called {name} during"):
                getattr(fetcher, name)()
        fetcher.close()
        with pytest.raises(ClosedError):
            first.result(WITHIN)
    copier = ConsumeTransformProduce(servers, ["empty"], lambda _: [], group_id="copier", transactional_id="copier")
    first = waits(copier, lambda: copier.step(WITHIN), threads)
    for name in ("step", "run"):
        with pytest.raises(ConcurrentAccessError, match=f"called {name} during"):
            getattr(copier, name)()
    copier.close()
    with pytest.raises(ClosedError):
        first.result(WITHIN)


@pytest.mark.parametrize("kind", [AsyncConsumer, AsyncFetcher])
def test_a_second_task_gets_the_error_of_every_method_and_the_first_one_its_records(servers: str, kind: Any) -> None:
    async def run() -> None:
        async with kind(servers, {"auto.offset.reset": "latest"}) as client:
            client.assign([EMPTY])
            first = await in_progress(client.poll(WITHIN))
            for name in methods(kind):
                with pytest.raises(ConcurrentAccessError, match=rf"{kind.__name__} is not safe .* {name} was called"):
                    await getattr(client, name)()
            while not client.metrics()["fetch-total"]:
                await asyncio.wait([first], timeout=0.01)
            with Producer(servers) as producer:
                producer.send("empty", b"once")
            assert [record.value for record in await first] == [b"once"]
            client.assign([FULL])

    asyncio.run(asyncio.wait_for(run(), WITHIN))


def test_records_that_two_threads_poll_come_once(servers: str, threads: ThreadPoolExecutor) -> None:
    with Consumer(servers, {"auto.offset.reset": "earliest", "max.poll.records": 3}) as consumer:
        consumer.assign([FULL])
        seen: list[int] = []

        def read(take: Callable[[], list[Any]]) -> int:
            refused = 0
            while len(seen) < RECORDS:
                try:
                    seen.extend(record.offset for record in take())
                except ConcurrentAccessError:
                    refused += 1
            return refused

        takes = [lambda: consumer.poll(0.1), lambda: consumer.poll(0.1, 1)]
        running = [threads.submit(read, take) for take in takes]
        for future in running:
            future.result(WITHIN)
        assert sorted(seen) == list(range(RECORDS))


def test_a_listener_may_call_the_consumer_also_by_tasks_of_its_own(servers: str) -> None:
    committed: list[Any] = []

    async def run() -> None:
        async with AsyncConsumer(servers, {"group.id": "by-tasks"}) as consumer:

            class Listener(RebalanceListener):
                async def on_assigned(self, partitions: Sequence[TopicPartition], /) -> None:
                    await asyncio.wait_for(consumer.commit(dict.fromkeys(partitions, 0)), WITHIN)
                    committed.append(await asyncio.create_task(consumer.committed(*partitions)))

            consumer.subscribe(["grouped"], listener=Listener())
            while not committed:
                await consumer.poll(0.1)

    asyncio.run(asyncio.wait_for(run(), WITHIN))
    assert [sorted(p.partition for p in found) for found in committed] == [[0, 1]]


def test_close_of_another_thread_ends_a_poll_with_an_error(servers: str, threads: ThreadPoolExecutor) -> None:
    consumer = Consumer(servers, {"group.id": "closed-elsewhere"})
    consumer.subscribe(["empty"])
    polling = waits(consumer, lambda: consumer.poll(WITHIN), threads)
    consumer.close()
    with pytest.raises(ClosedError, match="closed"):
        polling.result(WITHIN)
    with pytest.raises(ClosedError, match="the consumer is closed"):
        consumer.poll(0)
    consumer.close()


def test_close_of_another_thread_ends_an_iteration(servers: str, threads: ThreadPoolExecutor) -> None:
    consumer = Consumer(servers)
    consumer.assign([EMPTY])
    iterating = waits(consumer, lambda: list(consumer), threads)
    consumer.close()
    assert iterating.result(WITHIN) == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_listener_may_close_the_consumer(servers: str, protocol: str) -> None:
    consumer = Consumer(servers, {"group.id": f"closed-by-listener-{protocol}", "group.protocol": protocol})
    calls: list[str] = []

    class Listener(RebalanceListener):
        def on_assigned(self, _partitions: Sequence[TopicPartition], /) -> None:
            calls.append("assigned")
            consumer.close()

        def on_revoked(self, partitions: Sequence[TopicPartition], /) -> None:
            calls.append("revoked")
            consumer.commit(dict.fromkeys(partitions, 0))
            consumer.close()

    consumer.subscribe(["grouped"], listener=Listener())
    with pytest.raises(ClosedError, match="closed"):
        consumer.poll(WITHIN)
    assert calls == ["assigned", "revoked"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_listener_over_asyncio_may_close_the_consumer_and_iteration_ends(servers: str, protocol: str) -> None:
    calls: list[str] = []

    async def run() -> list[Any]:
        properties = {"group.id": f"closed-by-async-listener-{protocol}", "group.protocol": protocol}
        async with AsyncConsumer(servers, properties) as consumer:

            class Listener(RebalanceListener):
                async def on_assigned(self, _partitions: Sequence[TopicPartition], /) -> None:
                    calls.append("assigned")
                    await consumer.close()

                async def on_revoked(self, partitions: Sequence[TopicPartition], /) -> None:
                    calls.append("revoked")
                    await consumer.commit(dict.fromkeys(partitions, 0))
                    await consumer.close()

            consumer.subscribe(["grouped"], listener=Listener())
            return [record async for record in consumer]

    assert asyncio.run(asyncio.wait_for(run(), WITHIN)) == []
    assert calls == ["assigned", "revoked"]


def test_close_of_another_task_ends_a_poll_with_an_error_and_an_iteration_without(servers: str) -> None:
    async def run() -> None:
        async with AsyncConsumer(servers, {"group.id": "closed-by-task"}) as consumer:
            consumer.subscribe(["empty"])
            polling = await in_progress(consumer.poll(WITHIN))
            await asyncio.gather(consumer.close(), consumer.close())
            with pytest.raises(ClosedError, match="closed during poll"):
                await polling
        async with AsyncConsumer(servers) as consumer:
            consumer.assign([EMPTY])

            async def iterate() -> list[Any]:
                return [record async for record in consumer]

            iterating = await in_progress(iterate())
            await consumer.close()
            assert await iterating == []
        async with AsyncFetcher(servers) as fetcher:
            fetcher.assign([EMPTY])
            polling = await in_progress(fetcher.poll(WITHIN))
            await fetcher.close()
            with pytest.raises(ClosedError, match="closed during poll"):
                await polling

    asyncio.run(asyncio.wait_for(run(), WITHIN))


def test_a_consumer_that_is_closed_before_its_first_poll_leaves_nothing_that_was_never_awaited(servers: str) -> None:
    async def run(protocol: str) -> None:
        consumer = AsyncConsumer(servers, {"group.id": f"never-polled-{protocol}", "group.protocol": protocol})
        consumer.subscribe(["empty"])
        await consumer.close()

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for protocol in ("classic", "consumer"):
            asyncio.run(run(protocol))
            gc.collect()
    assert [str(warning.message) for warning in warned] == []


def test_an_asyncio_client_outside_of_its_event_loop_raises_a_sentence(servers: str) -> None:
    consumer, fetcher = AsyncConsumer(servers, {"group.id": "loops"}), AsyncFetcher(servers)
    with pytest.raises(ClientError, match=r"AsyncConsumer needs a running event loop: .* or use Consumer"):
        consumer.subscribe(["empty"])
    consumer.assign([EMPTY])
    fetcher.assign([FULL])
    asyncio.run(consumer.poll(0))
    asyncio.run(fetcher.poll(0))
    for client, call in ((consumer, consumer.poll(0)), (fetcher, fetcher.poll(0))):
        with pytest.raises(ClientError, match=f"{type(client).__name__} belongs to another event loop"):
            asyncio.run(call)
    with pytest.raises(ClientError, match="belongs to another event loop"):
        asyncio.run(consumer.close())
    asyncio.run(consumer.close())
    asyncio.run(fetcher.close())


def test_a_producer_in_another_event_loop_raises_a_sentence_and_closes(servers: str) -> None:
    producer = AsyncProducer(servers, {"linger.ms": "60000"})
    first = asyncio.run(producer.send("loops", b"first"))
    with pytest.raises(ClientError, match="AsyncProducer belongs to another event loop"):
        asyncio.run(producer.send("loops", b"second"))
    asyncio.run(producer.close())
    assert first.result().offset == 0


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_call_that_is_interrupted_while_it_is_handed_over_ends(
    servers: str, monkeypatch: pytest.MonkeyPatch, has_begun: bool
) -> None:
    # A group of its own for each: the other one may have committed an offset before the last records.
    with Consumer(servers, {"group.id": f"handed over {has_begun}"}) as consumer:
        consumer.assign([EMPTY])
        hand_over = consumer._loop.call_soon_threadsafe

        def interrupt(*arguments: Any, **keywords: Any) -> None:
            monkeypatch.undo()
            if has_begun:
                hand_over(*arguments, **keywords)
                wait_until(lambda: bool(consumer._async._calls), within=WITHIN, what="the call has begun")
            raise KeyboardInterrupt

        monkeypatch.setattr(consumer._loop, "call_soon_threadsafe", interrupt)
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(600)
        wait_until(lambda: not consumer._async._calls, within=WITHIN, what="the call has ended")
        assert consumer.poll(0) == []


def test_a_call_after_an_interrupt_is_not_refused(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(queue.SimpleQueue[Any]):
        def get(self, *_: Any, **__: Any) -> Any:
            monkeypatch.undo()
            raise KeyboardInterrupt

    with Consumer(servers, {"group.id": "interrupted"}) as consumer:
        consumer.assign([EMPTY])
        for _ in range(20):
            monkeypatch.setattr(queue, "SimpleQueue", Interrupted)
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(WITHIN)
            assert consumer.assignment() == {EMPTY}
