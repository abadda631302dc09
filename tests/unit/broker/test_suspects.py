"""Brokers that are seen to have died, before the metadata knows."""

from __future__ import annotations

import asyncio

import pytest

from pybroker.broker import suspects as module
from pybroker.broker.suspects import Suspects
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import EMPTY_IMAGE, BrokerRegistration, ClusterImage, MetadataImage


def image(*, fenced: bool = False, epoch: int = 7) -> MetadataImage:
    broker = BrokerRegistration(2, bytes(16), epoch, {}, {}, fenced=fenced)
    return MetadataImage(cluster=ClusterImage(brokers={2: broker}))


def _nobody() -> None:
    """Nobody has ended unseen."""


async def test_a_suspect_is_one_until_the_metadata_has_it_fenced() -> None:
    suspects = Suspects(image, _nobody)
    assert not suspects.are_there()
    suspects.note(2)
    assert suspects.are_there()
    assert suspects.among([1, 2])
    assert not suspects.among([1, 3])
    waiting = asyncio.ensure_future(suspects.changed())
    await asyncio.wait([waiting], timeout=0)
    suspects.publish(MetadataDelta(EMPTY_IMAGE), image())
    await waiting
    assert suspects.among([2]), "the image says nothing of it"
    suspects.publish(MetadataDelta(EMPTY_IMAGE), image(fenced=True))
    assert not suspects.are_there()


async def test_an_end_that_the_loop_has_not_come_to_is_looked_for() -> None:
    suspects = Suspects(image, lambda: suspects.note(2))
    assert suspects.are_there()
    assert suspects.among([2])


async def test_one_that_is_reached_again_is_no_suspect() -> None:
    suspects = Suspects(image, _nobody)
    suspects.acquit(2)
    suspects.note(2)
    waiting = asyncio.ensure_future(suspects.changed())
    await asyncio.wait([waiting], timeout=0)
    suspects.acquit(2)
    await waiting
    assert not suspects.are_there()


async def test_a_new_incarnation_is_no_suspect() -> None:
    suspects = Suspects(image, _nobody)
    suspects.note(2)
    suspects.publish(MetadataDelta(EMPTY_IMAGE), image(epoch=8))
    assert not suspects.among([2])


async def test_nobody_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_S", 0.01)
    suspects = Suspects(image, _nobody)
    suspects.note(2)
    suspects.note(2)
    await suspects.changed()
    assert not suspects.are_there()


@pytest.mark.parametrize("known", [EMPTY_IMAGE, image(fenced=True)], ids=["unknown", "fenced"])
async def test_who_leads_nothing_is_not_suspected(known: MetadataImage) -> None:
    suspects = Suspects(lambda: known, _nobody)
    suspects.note(2)
    assert not suspects.are_there()
