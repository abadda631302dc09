"""What is asked about transactional ids."""

from __future__ import annotations

import pytest

from pybroker.coordinator.transaction.admin import TransactionFilter
from pybroker.coordinator.transaction.errors import TransactionalIdNotFoundError
from pybroker.coordinator.transaction.events import DescribeTransaction, ListTransactions
from tests.support.transactions import FRESH, Coordinator


def listed(one: Coordinator, **filters: object) -> list[str]:
    requested = TransactionFilter(**filters)  # type: ignore[arg-type]
    known, now = one.query(ListTransactions())
    return [name for name, metadata in known if requested.lets_through(name, metadata, now)]


def test_what_is_known_is_described_and_nothing_else() -> None:
    one = Coordinator()
    one.init()
    assert one.query(DescribeTransaction("t")) == one.known()
    with pytest.raises(TransactionalIdNotFoundError):
        one.query(DescribeTransaction("u"))


def test_every_filter_narrows_the_list() -> None:
    one = Coordinator()
    one.add(one.init("t"))
    one.init("u", fresh_id=2000)
    one.now += 500
    assert listed(one) == ["t", "u"]
    assert listed(one, producer_ids=[2000]) == ["u"]
    assert listed(one, states=["Ongoing", "Empty"]) == ["t", "u"]
    assert listed(one, states=["Ongoing"], producer_ids=[FRESH]) == ["t"]
    assert listed(one, states=[]) == []
    assert listed(one, matches="t".__eq__) == ["t"]


def test_a_transaction_passes_that_began_longer_ago_and_so_does_what_never_began() -> None:
    one = Coordinator()
    one.add(one.init("t"))
    one.init("u", fresh_id=2000)
    one.now += 500
    assert listed(one, duration_ms=499) == ["t", "u"]
    assert listed(one, duration_ms=500) == ["u"]
