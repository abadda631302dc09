"""Partitions that a client may have made and deleted: whose quota binds, and what a bucket gives."""

from __future__ import annotations

import pytest

from pybroker.metadata.quotas import ClientQuotasImage, quota_entity
from pybroker.security.mutation_quotas import KEY, MutationQuotas
from pybroker.security.quotas import Limit, limit_of

LEVELS: list[tuple[dict[str, str | None], tuple[str | None, str | None]]] = [
    ({"user": "ann", "client-id": "c"}, ("ann", "c")),
    ({"user": "ann", "client-id": None}, ("ann", "c")),
    ({"user": "ann"}, ("ann", None)),
    ({"user": None, "client-id": "c"}, ("ann", "c")),
    ({"user": None, "client-id": None}, ("ann", "c")),
    ({"user": None}, ("ann", None)),
    ({"client-id": "c"}, (None, "c")),
    ({"client-id": None}, (None, "c")),
]
"""Entities from the most specific to the least, and who shares the quota."""


def image(*entities: dict[str, str | None]) -> ClientQuotasImage:
    """Quotas of 1, 2, 3 ... partitions a second."""
    return ClientQuotasImage(
        by_entity={quota_entity(one.items()): {KEY: float(rate)} for rate, one in enumerate(entities, 1)}
    )


@pytest.mark.parametrize("most", range(len(LEVELS)))
def test_the_most_specific_entity_that_has_a_quota_binds(most: int) -> None:
    quotas = image(*(entity for entity, _ in LEVELS[most:]), {"user": "bob"}, {"ip": None})
    assert limit_of(quotas, KEY, "ann", "c") == Limit(1.0, *LEVELS[most][1])


def test_another_key_binds_nobody_here_and_a_client_without_an_id_is_bound_by_its_user() -> None:
    other = ClientQuotasImage(by_entity={quota_entity([("user", "ann")]): {"producer_byte_rate": 1.0}})
    assert limit_of(other, KEY, "ann", "c") is None
    assert limit_of(image({"client-id": None}), KEY, "ann", "") is None
    assert limit_of(image({"user": None, "client-id": None}, {"user": None}), KEY, "ann", "") == (2.0, "ann", None)


def test_a_strict_client_is_refused_while_it_is_in_debt_and_counted_for_nothing() -> None:
    buckets, quotas = MutationQuotas(11, 1), image({"user": "ann"})
    charge = buckets.charge(quotas, "ann", "c", 0.0, is_strict=True)
    assert charge is not None
    assert charge.take(11)
    assert charge.take(5), "nothing is left, and nothing is owed"
    assert not charge.take(1)
    assert charge.wait_ms == 5000
    later = buckets.charge(quotas, "ann", "other", 4.0, is_strict=True)
    assert later is not None
    assert (later.take(1), later.wait_ms) == (False, 1000)
    assert later.take(0)
    again = buckets.charge(quotas, "ann", "c", 5.0, is_strict=True)
    assert again is not None
    assert (again.take(1), again.wait_ms) == (True, 0)


def test_a_permissive_client_is_served_and_asked_to_wait() -> None:
    charge = MutationQuotas(1, 1).charge(image({"user": "ann"}), "ann", "c", 0.0, is_strict=False)
    assert charge is not None
    assert (charge.take(1), charge.wait_ms) == (True, 0)
    assert (charge.take(3), charge.wait_ms) == (True, 3000)


def test_what_came_to_nothing_is_given_back() -> None:
    charge = MutationQuotas(1, 1).charge(image({"user": "ann"}), "ann", "c", 0.0, is_strict=True)
    assert charge is not None
    assert charge.take(9)
    charge.give_back(9)
    assert charge.take(2)
    assert not charge.take(1)


@pytest.mark.parametrize("rate", [1e-7, 5e-324])
@pytest.mark.parametrize("is_strict", [False, True])
def test_no_wait_is_longer_than_a_response_can_say(rate: float, is_strict: bool) -> None:
    quotas = ClientQuotasImage(by_entity={quota_entity([("user", "ann")]): {KEY: rate}})
    charge = MutationQuotas(11, 1).charge(quotas, "ann", "c", 0.0, is_strict=is_strict)
    assert charge is not None
    assert charge.take(1)
    assert charge.take(1) is not is_strict
    assert charge.finish() == 2**31 - 1


def test_full_buckets_are_forgotten_before_there_are_too_many() -> None:
    buckets, quotas = MutationQuotas(11, 1), image({"user": None, "client-id": None})
    for number in range(12_000):
        charge = buckets.charge(quotas, "ann", f"client-{number}", number * 0.01, is_strict=True)
        assert charge is not None
        assert charge.take(1)
    assert len(buckets._buckets) <= 10_000


def test_what_is_shown_grows_with_requests_that_are_done_and_those_who_used_most_come_first() -> None:
    buckets, quotas = MutationQuotas(11, 1), image({"user": None})
    for user, partitions, given_back in (("ann", 3, 1), ("bob", 20, 0), ("cid", 1, 1)):
        charge = buckets.charge(quotas, user, "c", 0.0, is_strict=False)
        assert charge is not None
        charge.take(partitions)
        assert buckets.uses(10, 0.0)[0][-1].partitions == 0, "it is not done yet"
        charge.give_back(given_back)
        assert charge.finish() == (9_000 if user == "bob" else 0)
    assert buckets.uses(2, 5.0) == ([("bob", "", -4.0, 20, 9_000), ("ann", "", 11.0, 2, 0)], 1)
    assert buckets.uses(2, 3600.0) == ([], 0), "nobody came for an hour"
