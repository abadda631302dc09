from __future__ import annotations

import threading

from pybroker.storage.workers import Workers


def test_what_was_handed_in_before_a_change_is_done_beside_what_comes_after() -> None:
    workers = Workers(1)
    go_on, here = threading.Event(), threading.Barrier(3)
    first = workers.submit(go_on.wait, 20)
    behind = workers.submit(int, "7")
    workers.resize(2)
    both = [workers.submit(here.wait, 20) for _ in range(2)]
    here.wait(20)
    assert all(done.result(20) in range(3) for done in both), "two at a time"
    assert not behind.done()
    go_on.set()
    workers.shutdown()
    assert (first.result(0), behind.result(0), workers.size) == (True, 7, 2)


def test_the_same_size_is_no_change() -> None:
    workers = Workers(1)
    thread = workers.submit(threading.get_ident).result(20)
    workers.resize(1)
    assert workers.submit(threading.get_ident).result(20) == thread
    workers.shutdown()
