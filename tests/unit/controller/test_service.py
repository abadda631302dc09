"""The controller's face: what it answers is committed, published, and there after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pybroker.controller import service
from pybroker.controller.cluster.events import ConfigChange, FeatureUpdate, NewTopic, UpgradeType
from pybroker.controller.errors import NotControllerError, StaleBrokerEpochError
from pybroker.controller.service import Controller
from pybroker.metadata.image import TOPIC_RESOURCE, ConfigResource, MetadataImage
from pybroker.protocol.errors import ErrorCode


async def started(directory: Path, **settings: Any) -> Controller:
    return await Controller.start(
        directory,
        **{
            "node_id": 1,
            "cluster_id": "c",
            "num_partitions": 2,
            "replication_factor": 1,
            "validate_topic_configs": lambda configs: "bad" if "bad" in configs else None,
            "session_timeout_ms": 9000,
            **settings,
        },
    )


async def registered(controller: Controller) -> int:
    result = await controller.register_broker(
        1,
        incarnation_id=b"i" * 16,
        listeners={"PLAINTEXT": ("h", 9092)},
        security_protocols={"PLAINTEXT": 0},
        fenced=False,
    )
    assert result.error_code is ErrorCode.NONE
    return result.broker_epoch


@asynccontextmanager
async def running(directory: Path, **settings: Any) -> AsyncIterator[Controller]:
    controller = await started(directory, **settings)
    try:
        yield controller
    finally:
        await controller.stop()


def without_offset(image: MetadataImage) -> tuple[Any, ...]:
    return image.cluster, image.topics, image.configs, image.features, image.producer_ids


async def test_a_created_topic_is_in_the_image_when_the_answer_comes(tmp_path: Path) -> None:
    async with running(tmp_path) as controller:
        await registered(controller)
        [created] = await controller.create_topics([NewTopic(name="t", num_partitions=-1, replication_factor=-1)])
        assert (created.error_code, created.num_partitions, created.replication_factor) == (ErrorCode.NONE, 2, 1)
        assert controller.image.topics.by_id[created.topic_id].name == "t"


async def test_everything_survives_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as controller:
        epoch = await registered(controller)
        await controller.create_topics([NewTopic(name=name, num_partitions=1, replication_factor=1) for name in "ab"])
        await controller.delete_topics(["a"])
        change = ConfigChange(ConfigResource(TOPIC_RESOURCE, "b"), {"retention.ms": "5"})
        await controller.alter_configs([change])
        assert await controller.allocate_producer_ids(1, epoch) == range(1000)
        before = controller.image
    async with running(tmp_path) as controller:
        assert without_offset(controller.image) == without_offset(before)
        assert await registered(controller) > epoch
        assert await controller.allocate_producer_ids(1, controller.image.cluster.brokers[1].epoch) == range(1000, 2000)


async def test_many_requests_of_one_turn_are_one_batch_of_the_log(tmp_path: Path) -> None:
    async with running(tmp_path) as controller:
        await registered(controller)
        offsets = []
        before = controller.image.offset
        creations = [
            controller.create_topics([NewTopic(name=f"t{n}", num_partitions=1, replication_factor=1)])
            for n in range(50)
        ]

        async def create(creation: Awaitable[Any]) -> None:
            await creation
            offsets.append(controller.image.offset)

        await asyncio.gather(*map(create, creations))
        assert set(offsets) == {before + 100}


async def test_publishers_are_called_before_the_answer(tmp_path: Path) -> None:
    published: list[int] = []

    class Publisher:
        def publish(self, delta: object, image: MetadataImage) -> None:
            published.append(image.offset)

    async with running(tmp_path, publishers=[Publisher()]) as controller:
        assert published == [controller.image.offset]
        await registered(controller)
        assert published[-1] == controller.image.offset


async def test_what_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as controller:
        await registered(controller)
        offset = controller.image.offset
        topic = NewTopic(name="t", num_partitions=1, replication_factor=1)
        [created] = await controller.create_topics([topic], validate_only=True)
        assert created.error_code is ErrorCode.NONE
        [deleted] = await controller.delete_topics([b"?" * 16])
        assert deleted.error_code is ErrorCode.UNKNOWN_TOPIC_ID
        assert controller.image.offset == offset


async def test_a_new_cluster_has_its_features_finalized(tmp_path: Path) -> None:
    async with running(tmp_path) as controller:
        assert controller.image.features.levels == {"metadata.version": 25, "group.version": 1}
        assert (
            await controller.update_features([FeatureUpdate("metadata.version", 99)])
        ).error_code is ErrorCode.INVALID_UPDATE_VERSION


async def test_a_cluster_of_an_older_broker_has_its_missing_features_finalized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(service, "INITIAL_LEVELS", {"metadata.version": 25})
        async with running(tmp_path) as controller:
            assert controller.image.features.levels == {"metadata.version": 25}
    async with running(tmp_path) as controller:
        assert controller.image.features.levels == {"metadata.version": 25, "group.version": 1}
        epoch = controller.image.features.epoch
    async with running(tmp_path) as controller:
        assert controller.image.features.epoch == epoch


async def test_a_feature_that_was_removed_stays_so_over_restarts(tmp_path: Path) -> None:
    async with running(tmp_path) as controller:
        result = await controller.update_features([FeatureUpdate("group.version", 0, UpgradeType.SAFE_DOWNGRADE)])
        assert result.error_code is ErrorCode.NONE
    async with running(tmp_path) as controller:
        assert controller.image.features.levels == {"metadata.version": 25, "group.version": 0}


async def test_a_broker_that_falls_silent_is_fenced(tmp_path: Path) -> None:
    async with running(tmp_path, session_timeout_ms=30) as controller:
        result = await controller.register_broker(
            2, incarnation_id=b"j" * 16, listeners={"P": ("h", 1)}, security_protocols={"P": 0}
        )
        beat = await controller.heartbeat(2, result.broker_epoch)
        assert not beat.is_fenced
        fenced = asyncio.Event()
        await until(lambda: controller.image.cluster.brokers[2].fenced, fenced)
        other = await controller.register_broker(
            2, incarnation_id=b"k" * 16, listeners={"P": ("h", 1)}, security_protocols={"P": 0}
        )
        assert other.error_code is ErrorCode.NONE
        assert (await controller.unregister_broker(2)).error_code is ErrorCode.NONE


async def until(condition: Callable[[], bool], never: asyncio.Event) -> None:
    """Give the loop turns until the condition holds; the test's own time limit is the end."""
    while not condition():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(never.wait(), 0.005)


async def test_a_broker_that_is_alive_is_not_replaced_by_another(tmp_path: Path) -> None:
    async with running(tmp_path) as controller:
        for incarnation, code in ((b"j", ErrorCode.NONE), (b"k", ErrorCode.DUPLICATE_BROKER_REGISTRATION)):
            result = await controller.register_broker(
                2, incarnation_id=incarnation * 16, listeners={"P": ("h", 1)}, security_protocols={"P": 0}
            )
            assert result.error_code is code


async def test_a_stale_broker_gets_no_producer_ids(tmp_path: Path) -> None:
    async with running(tmp_path) as controller:
        with pytest.raises(StaleBrokerEpochError):
            await controller.allocate_producer_ids(1, 0)


async def test_a_stopped_controller_refuses(tmp_path: Path) -> None:
    controller = await started(tmp_path)
    await controller.stop()
    with pytest.raises(NotControllerError, match="stopping"):
        await controller.delete_topics(["t"])


async def test_a_write_that_fails_ends_the_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Exception] = []
    controller = await started(tmp_path, on_failure=failures.append)
    await registered(controller)
    before = controller.image

    def fail(values: list[bytes]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(controller._voter, "commit", fail)
    topic = NewTopic(name="t", num_partitions=1, replication_factor=1)
    with pytest.raises(OSError, match="No space left"):
        await controller.create_topics([topic])
    assert len(failures) == 1
    assert controller.image is before
    with pytest.raises(NotControllerError, match="No space left"):
        await controller.create_topics([topic])
    await controller.stop()
