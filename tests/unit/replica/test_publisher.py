from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import (
    EMPTY_IMAGE,
    NO_LEADER,
    TOPIC_RESOURCE,
    BrokerRegistration,
    ClusterImage,
    ConfigResource,
    ConfigsImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from pybroker.net.listeners import open_listeners
from pybroker.net.tls import TlsListeners
from pybroker.replica import publisher as publisher_module
from pybroker.replica.publisher import PartitionPublisher
from pybroker.storage import partitions as partitions_module
from pybroker.storage.log_dirs.directories import Directories
from pybroker.storage.native import LogOpening
from pybroker.storage.partitions import Partitions
from tests.support.batches import batch_of
from tests.support.partitions import start_data_plane
from tests.support.wire import Wire, produce, produced

NOT_LEADER_OR_FOLLOWER = 6


class Broker:
    """A publisher over a directory, and the image that it was given last."""

    def __init__(self, directory: Path) -> None:
        config = BrokerConfig({"log.dirs": str(directory), "listeners": "PLAINTEXT://127.0.0.1:0"})
        self.config = config
        self.directories = Directories.acquire(config.log_directories, config.metadata_directory, config.node_id)
        self.directories.format(config.node_id)
        self.partitions = Partitions(self.directories, lambda: 0)
        self.partitions.scan()
        self.data_plane = start_data_plane(config)
        self.sizes: list[int] = []
        self.workers = ThreadPoolExecutor(2)
        self.publisher = PartitionPublisher(
            config,
            self.partitions,
            self.data_plane,
            self.workers,
            published=lambda _image: self.sizes.append(len(self.publisher._table)),
        )
        self.image = EMPTY_IMAGE

    def publish(self, *topics: TopicImage, configs: ConfigsImage | None = None) -> MetadataImage:
        self.image = msgspec.structs.replace(
            self.image,
            offset=self.image.offset + 1,
            topics=TopicsImage({one.name: one for one in topics}, {one.topic_id: one for one in topics}),
            configs=configs or self.image.configs,
        )
        self.publisher.publish(MetadataDelta(EMPTY_IMAGE), self.image)
        return self.image

    async def agree(self) -> None:
        await self.publisher.published(self.image.offset)

    def close(self) -> None:
        self.workers.shutdown()
        self.data_plane.shut_down(grace_ms=0)
        self.directories.release()


def topic(name: str, *, leader: int = 1, epoch: int = 0, replicas: tuple[int, ...] = (1,)) -> TopicImage:
    partition = PartitionImage(leader, epoch, 0, replicas, replicas)
    return TopicImage(name, os.urandom(16), {0: partition})


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path)
    yield made
    made.close()


async def test_a_topic_is_open_has_its_leader_and_is_shown_when_it_is_published(broker: Broker) -> None:
    broker.publish(topic("orders", epoch=3))
    await broker.agree()
    opened = broker.partitions.get("orders", 0)
    assert opened is not None
    assert opened.leader_epoch == 3
    assert broker.sizes[-1] == 1


async def test_images_that_come_while_one_is_worked_on_are_taken_in_one_go(broker: Broker) -> None:
    topics: list[TopicImage] = []
    for number in range(20):
        topics.append(topic(f"topic-{number}"))
        broker.publish(*topics)
    await broker.agree()
    assert broker.sizes[-1] == 20
    assert len(broker.sizes) <= 3


async def test_a_topic_that_is_gone_is_not_shown_and_its_log_is_deleted(broker: Broker, tmp_path: Path) -> None:
    removed = topic("orders")
    broker.publish(removed)
    await broker.agree()
    opened = broker.partitions.get("orders", 0)
    assert opened is not None
    retired: list[TopicImage] = []
    broker.publisher._retire = retired.append  # type: ignore[method-assign,assignment]
    broker.publish()
    await broker.agree()
    assert retired == [removed]
    assert broker.sizes[-1] == 0
    assert not (tmp_path / "orders-0").exists()


async def test_a_partition_of_other_brokers_is_shown_and_not_opened(broker: Broker) -> None:
    broker.publish(topic("elsewhere", leader=2, replicas=(2, 3)))
    await broker.agree()
    assert broker.partitions.all() == []
    assert broker.sizes[-1] == 1


def replicated(before: TopicImage, *, leader: int, epoch: int, isr: tuple[int, ...] = (1, 2)) -> TopicImage:
    partition = PartitionImage(leader, epoch, epoch, (1, 2), isr)
    return TopicImage(before.name, before.topic_id, {0: partition})


def role_of(broker: Broker) -> tuple[str, int]:
    opened = broker.partitions.get("orders", 0)
    assert opened is not None
    return opened.role, opened.leader_epoch


async def test_a_broker_that_another_one_succeeds_leads_no_more(broker: Broker) -> None:
    orders = topic("orders", epoch=3, replicas=(1, 2))
    broker.publish(orders)
    await broker.agree()
    assert role_of(broker) == ("leader", 3)
    broker.publish(replicated(orders, leader=2, epoch=4))
    await broker.agree()
    assert role_of(broker) == ("follower", 4)
    broker.publish(replicated(orders, leader=NO_LEADER, epoch=5))
    await broker.agree()
    assert role_of(broker) == ("none", 5)
    broker.publish(replicated(orders, leader=1, epoch=6, isr=(1,)))
    await broker.agree()
    assert role_of(broker) == ("leader", 6)
    assert broker.publisher.failure_of("orders") is None


async def test_a_replica_that_is_taken_away_is_deleted_and_begins_anew_when_it_is_given_back(
    broker: Broker, tmp_path: Path
) -> None:
    orders = topic("orders", epoch=3)
    broker.publish(orders)
    await broker.agree()
    elsewhere = PartitionImage(2, 4, 1, (2,), (2,))
    broker.publish(TopicImage(orders.name, orders.topic_id, {0: elsewhere}))
    await broker.agree()
    assert broker.partitions.get("orders", 0) is None
    assert not (tmp_path / "orders-0").exists()
    back = PartitionImage(2, 5, 2, (2, 1), (2,))
    broker.publish(TopicImage(orders.name, orders.topic_id, {0: back}))
    await broker.agree()
    assert role_of(broker) == ("follower", 5)


async def test_a_role_that_cannot_be_is_reported_and_the_one_before_stays(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    orders = topic("orders", epoch=3, replicas=(1, 2))
    broker.publish(orders)
    await broker.agree()
    broker.publish(replicated(orders, leader=2, epoch=3))
    await broker.agree()
    assert role_of(broker) == ("leader", 3)
    assert "the role at leader epoch 3 is leader: within the epoch it cannot become follower" in caplog.text


@pytest.mark.parametrize(("number", "is_offline"), [(errno.ENOSPC, True), (errno.EMFILE, False)])
async def test_a_disk_that_takes_no_new_leader_epoch_has_failed(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, number: int, is_offline: bool
) -> None:
    error = OSError(number, os.strerror(number))
    monkeypatch.setattr(publisher_module, "become_roles", lambda changes, _data_plane: [error for _ in changes])
    broker.publish(topic("orders", epoch=3))
    await broker.agree()
    assert broker.directories.logs[0].offline is is_offline
    await broker.publisher.stop()


async def test_what_waits_for_an_image_is_woken_by_a_newer_one(broker: Broker) -> None:
    first = broker.publish(topic("a"))
    broker.publish(topic("a"), topic("b"))
    await broker.publisher.published(first.offset)
    assert broker.partitions.get("b", 0) is not None


async def test_a_topic_with_a_setting_of_another_version_is_served_with_its_others(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = ConfigsImage({ConfigResource(TOPIC_RESOURCE, "orders"): {"segment.bytes": "1", "retention.ms": "-1"}})
    broker.publish(topic("orders"), configs=wrong)
    await broker.agree()
    assert broker.partitions.get("orders", 0) is not None
    assert "topic orders: ignoring a stored setting: segment.bytes=1: expected" in caplog.text
    settings = broker.publisher.settings_of("orders")
    assert settings is not None
    assert (settings.segment_bytes, settings.retention_ms) == (1024**3, -1)


async def test_a_partition_that_cannot_be_opened_does_not_keep_the_others(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken-0").write_text("a file where a directory is due")
    broker.publish(topic("broken"), topic("whole"))
    await broker.agree()
    assert broker.partitions.get("whole", 0) is not None
    assert broker.partitions.get("broken", 0) is None
    assert "broken-0 cannot be opened" in caplog.text


async def test_a_topics_settings_in_force_are_returned_while_it_is_there(broker: Broker) -> None:
    configs = ConfigsImage({ConfigResource(TOPIC_RESOURCE, "orders"): {"retention.ms": "5"}})
    orders = topic("orders")
    broker.publish(orders, configs=configs)
    await broker.agree()
    settings = broker.publisher.settings_of("orders")
    assert settings is not None
    assert settings.retention_ms == 5
    broker.publish(orders, configs=ConfigsImage({ConfigResource(TOPIC_RESOURCE, "orders"): {"retention.ms": "6"}}))
    await broker.agree()
    changed = broker.publisher.settings_of("orders")
    assert changed is not None
    assert changed.retention_ms == 6
    broker.publisher._retire = lambda topic: None  # type: ignore[method-assign]
    broker.publish()
    await broker.agree()
    assert broker.publisher.settings_of("orders") is None


async def test_every_topic_inherits_from_the_brokers_changed_settings(broker: Broker) -> None:
    both = (topic("a"), topic("b"))
    broker.publish(*both)
    await broker.agree()
    broker.publisher.reconfigure(BrokerConfig({"log.retention.ms": "7"}))
    broker.publish(*both)
    await broker.agree()
    for name in ("a", "b"):
        settings = broker.publisher.settings_of(name)
        assert settings is not None
        assert settings.retention_ms == 7


async def turn_of_the_loop() -> None:
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned


@pytest.mark.parametrize("step", ["open", "lead"])
async def test_a_partition_that_lacks_a_descriptor_is_opened_and_gets_its_leader_later(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    emfile = OSError(errno.EMFILE, "orders-0: Too many open files")
    monkeypatch.setattr(publisher_module, "_AGAIN_S", 0.01)
    caplog.set_level("INFO", logger="pybroker.replica")
    with monkeypatch.context() as famine:
        if step == "open":
            famine.setattr(partitions_module, "open_logs", lambda openings, *, now_ms: [emfile for _ in openings])
        else:
            famine.setattr(publisher_module, "become_roles", lambda changes, _data_plane: [emfile for _ in changes])
        broker.publish(topic("orders", epoch=3))
        await broker.agree()
        failure = broker.publisher.failure_of("orders") or ""
        assert "the log of orders-0 cannot be opened: " in failure
        assert "RLIMIT_NOFILE" in failure
        assert not broker.partitions.is_lost("orders", 0)
        broker.partitions.set_aside_strays()
        broker.publish(*broker.image.topics.by_id.values(), topic("others"))
        await broker.agree()
        assert caplog.text.count("cannot be opened or have no leader") == 1, "one line for all of them"
    async with asyncio.timeout(60):
        while "are open" not in caplog.text:
            await turn_of_the_loop()
    assert broker.publisher.failure_of("others") is None
    for name, epoch in (("orders", 3), ("others", 0)):
        opened = broker.partitions.get(name, 0)
        assert opened is not None
        assert opened.leader_epoch == epoch
    assert list(tmp_path.glob("*-stray")) == []
    await broker.publisher.stop()
    assert "are open" in caplog.text
    assert broker.publisher.failure_of("orders") is None


async def test_what_lacks_a_descriptor_and_is_deleted_leaves_nothing_behind(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half_opened(openings: list[LogOpening], *, now_ms: int) -> list[OSError]:
        (tmp_path / "orders-0").mkdir()
        return [OSError(errno.EMFILE, "too many") for _ in openings]

    with monkeypatch.context() as famine:
        famine.setattr(partitions_module, "open_logs", half_opened)
        broker.publish(topic("orders"))
        await broker.agree()
        broker.publish()
        await broker.agree()
    await broker.publisher.stop()
    assert broker.publisher.failure_of("orders") is None
    assert list(tmp_path.glob("orders-*")) == []


async def test_answers_name_where_the_leader_is_by_the_clients_listener_as_long_as_it_is_registered(
    broker: Broker,
) -> None:
    config = broker.config
    (listener,) = open_listeners(
        broker.data_plane,
        config.endpoints,
        backlog=config.socket_listen_backlog_size,
        unauthenticated_max_bytes=config.sasl_server_max_receive_size,
        tls=TlsListeners({}),
    )

    def named(wire: Wire) -> list[tuple[int, str, int, str | None]]:
        response = wire.query(produce("orders", batch_of(b"a"), version=10))
        part = produced(response)
        assert (part.error_code, part.current_leader.leader_id) == (NOT_LEADER_OR_FOLLOWER, 2)
        return [(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints]

    of_here = {"OUTSIDE": ("o", 1), "PLAINTEXT": ("h", 1)}
    of_there = {"OUTSIDE": ("outside", 443), "PLAINTEXT": ("there", 9092)}
    here = BrokerRegistration(1, b"i" * 16, 1, of_here, {}, fenced=False)
    there = BrokerRegistration(2, b"i" * 16, 1, of_there, {}, rack="r", fenced=False)
    orders = topic("orders", leader=2, replicas=(2,))
    with Wire(f"127.0.0.1:{listener.bound.port}") as wire:
        for brokers, endpoints in (([here], []), ([here, there], [(2, "there", 9092, "r")]), ([here], [])):
            broker.image = msgspec.structs.replace(broker.image, cluster=ClusterImage({one.id: one for one in brokers}))
            broker.publish(orders)
            await broker.agree()
            assert await asyncio.to_thread(named, wire) == endpoints


async def test_an_image_of_before_the_registration_is_not_put_in_force(broker: Broker) -> None:
    broker.publisher.hold()
    broker.publish(topic("a"))
    await asyncio.gather(asyncio.Queue[None]().join())  # a turn of the loop
    assert broker.publisher.offset_in_force == -1
    broker.publisher.release(broker.image.offset + 1)
    assert broker.publisher._work is None
    broker.publish(topic("a"))
    await broker.agree()
    assert broker.partitions.get("a", 0) is not None
