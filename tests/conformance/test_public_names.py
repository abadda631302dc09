"""What a program sees of the clients: names, help, errors."""

from __future__ import annotations

import pydoc

import pytest

import pybroker.client
from pybroker.client import AsyncProducer, LoadGenerator, Producer, errors

LOAD = {"begin_phase", "send_many", "send_random_letters", "send_stamped", "summary", "take_interval", "take_window"}


@pytest.mark.parametrize("kind", [Producer, AsyncProducer])
def test_a_producer_shows_neither_load_generation_nor_its_insides(kind: type) -> None:
    inside = {"post", "post_again", "raise_late", "send_batch", "send_stream", "settlements", "identity"}
    assert not set(dir(kind)) & (LOAD | inside)


def test_load_generation_has_a_class() -> None:
    assert set(dir(LoadGenerator)) >= LOAD


def test_every_public_attribute_of_a_producer_has_help() -> None:
    public = [name for name in dir(Producer) if not name.startswith("_")]
    assert [name for name in public if not (getattr(Producer, name).__doc__ or "").strip()] == []


def test_help_of_send_has_arguments_errors_and_an_example() -> None:
    text = pydoc.plain(pydoc.render_doc(Producer.send))
    for part in ("Args:", "Raises:", "Example:", "on_delivery", "headers", "timestamp_ms", "BufferFullError"):
        assert part in text


def test_every_error_is_exported() -> None:
    raised = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.ClientError) and kind.__module__ == errors.__name__
    }
    # Internal: a consumer sees to a new leader itself, and raises LogTruncationError for all partitions together.
    assert raised - {"NewLeaderError", "PartitionTruncatedError"} <= set(pybroker.client.__all__)
