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
    here.wait(60)
    assert all(done.result(60) in range(3) for done in both), "two at a time"
    assert not behind.done()
    go_on.set()
    workers.shutdown()
    assert (first.result(0), behind.result(0), workers.size) == (True, 7, 2)


def test_what_is_not_begun_can_be_given_up_with_the_pools_that_were_replaced() -> None:
    workers = Workers(1)
    go_on, begun = threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return go_on.wait(60)

    first = workers.submit(work)
    behind = workers.submit(int, "7")
    assert begun.wait(60)
    workers.resize(2)
    workers.shutdown(wait=False, cancel_futures=True)
    go_on.set()
    assert (first.result(60), behind.cancelled()) == (True, True)


def test_the_same_size_is_no_change() -> None:
    workers = Workers(1)
    thread = workers.submit(threading.get_ident).result(60)
    workers.resize(1)
    assert workers.submit(threading.get_ident).result(60) == thread
    workers.shutdown()
