"""A call of the blocking consumer that Ctrl-C meets before it has begun."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any, NoReturn

import pytest

from pybroker.client import Consumer, TopicPartition


def test_it_leaves_nothing_that_was_never_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    with Consumer("127.0.0.1:1") as consumer, warnings.catch_warnings():
        warnings.simplefilter("error")
        consumer.assign([TopicPartition("t", 0)])
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(0.0)
        gc.collect()
        assert consumer.poll(0.0) == [], "the next call is one of the program's, not of a callback"
