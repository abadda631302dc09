"""The checker finds nothing in a history of an undamaged log, and each kind of damage in a damaged one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.checker import RULES, check, summary
from tests.chaos.history import Commit, EndRead, History, LeaderEpoch, Outcome, Poll, Record, Send, Where

WHERE = Where("orders", 0)
GROUP = "readers"


def undamaged(outcomes: list[bool], cuts: set[int], *, compacted: bool = False) -> History:
    """A history of one producer, one group and one reader of ends; `outcomes` says which sends got their answer.

    The log has every record. Epochs rise at `cuts`, where the group's reader begins anew as well.
    """
    history = History(drained={GROUP}, compacted={WHERE.topic} if compacted else set())
    records = []
    epoch = 0
    epochs = history.leader_epochs[WHERE] = [LeaderEpoch(epoch, -1.0)]
    for number, responded in enumerate(outcomes):
        at = float(number * 10)
        if number in cuts:
            epoch += 1
            epochs.append(LeaderEpoch(epoch, at - 0.5))
        key = f"key-{number % 2}"
        record = Record(number, f"p:{number}", key, epoch)
        records.append(record)
        outcome = Outcome.ACKNOWLEDGED if responded else Outcome.UNKNOWN
        offset = number if responded else -1
        history.sends.append(Send(WHERE, "p", number, record.value, key, outcome, offset, at, at + 1))
        history.ends.append(EndRead(WHERE, number + 1, epoch, at + 2, at + 3))
        history.polls.append(Poll(WHERE, f"reader-{epoch}", GROUP, (record,), at + 4, at + 5))
        history.commits.append(Commit(WHERE, GROUP, number + 1, at + 6, at + 7, is_read=False))
        history.commits.append(Commit(WHERE, GROUP, number + 1, at + 8, at + 9, is_read=True))
    last = {record.key: record.offset for record in records}
    history.final[WHERE] = [one for one in records if not compacted or last[one.key] == one.offset]
    return history


histories = st.builds(
    undamaged, st.lists(st.booleans(), max_size=40), st.sets(st.integers(0, 40)), compacted=st.booleans()
)


@given(histories)
def test_nothing_is_found_in_an_undamaged_history(history: History) -> None:
    assert summary(check(history)) == ""


@given(histories, st.randoms(use_true_random=False))
def test_the_order_in_which_a_history_was_recorded_does_not_matter(history: History, random: object) -> None:
    for recorded in (history.sends, history.polls, history.ends, history.commits):
        random.shuffle(recorded)  # type: ignore[attr-defined]
    assert check(history) == []


@given(histories, st.sets(st.integers(0, 40)))
def test_an_acknowledgement_need_not_name_its_offset(history: History, unnamed: set[int]) -> None:
    history.sends = [send._replace(offset=-1) if send.number in unnamed else send for send in history.sends]
    assert check(history) == []


def test_what_was_acknowledged_without_an_offset_may_not_be_lost() -> None:
    """The key has an earlier record alone: compaction cannot have dropped the later one."""
    history = undamaged([True] * 4, set(), compacted=True)
    history.sends[3] = history.sends[3]._replace(offset=-1)
    history.final[WHERE] = [Record(1, "p:1", "key-1", 0) if one.offset == 3 else one for one in history.final[WHERE]]
    assert "lost" in {violation.kind for violation in check(history)}


def _lose(history: History, at: int) -> None:
    history.final[WHERE] = [one for one in history.final[WHERE] if one.offset != at]


def _lose_unread(history: History, at: int) -> None:
    _lose(history, at)
    history.polls = [poll for poll in history.polls if poll.records[0].offset != at]


def _lose_unacknowledged(history: History, at: int) -> None:
    history.sends[at] = history.sends[at]._replace(outcome=Outcome.UNKNOWN, offset=-1)
    _lose(history, at)


def _repeat(history: History, at: int) -> None:
    records = history.final[WHERE]
    records.append(records[at]._replace(offset=len(records)))


def _swap(history: History, at: int) -> None:
    one, other = history.final[WHERE][at : at + 2]
    history.final[WHERE][at : at + 2] = [
        other._replace(offset=one.offset),
        one._replace(offset=other.offset),
    ]


def _overwrite(history: History, at: int) -> None:
    history.final[WHERE][at] = history.final[WHERE][at]._replace(value="other")


def _fail(history: History, at: int) -> None:
    history.sends[at] = history.sends[at]._replace(outcome=Outcome.FAILED, offset=-1)


def _forget_send(history: History, at: int) -> None:
    del history.sends[at]


def _poll_again(history: History, at: int) -> None:
    last = history.polls[-1]
    history.polls.append(history.polls[at]._replace(reader=last.reader, begun=last.ended, ended=last.ended + 1))


def _skip(history: History, at: int) -> None:
    del history.polls[at]


def _respond_old_end(history: History, at: int) -> None:
    history.ends[at] = history.ends[at]._replace(offset=at - 1)


def _commit_old(history: History, at: int) -> None:
    history.commits[2 * at] = history.commits[2 * at]._replace(offset=at - 1)


def _read_old_commit(history: History, at: int) -> None:
    history.commits[2 * at + 1] = history.commits[2 * at + 1]._replace(offset=at)


DAMAGES: list[tuple[Callable[[History, int], None], str]] = [
    (_lose, "lost"),
    (_lose_unread, "lost"),
    (_lose_unacknowledged, "read and lost"),
    (_repeat, "duplicate"),
    (_swap, "reordered"),
    (_swap, "inconsistent offsets"),
    (_overwrite, "inconsistent offsets"),
    (_overwrite, "phantom"),
    (_overwrite, "lost"),
    (_fail, "aborted read"),
    (_forget_send, "phantom"),
    (_poll_again, "nonmonotonic poll"),
    (_skip, "skipped"),
    (_skip, "unseen"),
    (_respond_old_end, "stale read"),
    (_respond_old_end, "end went back"),
    (_commit_old, "committed offset went back"),
    (_read_old_commit, "committed offset went back"),
]


@pytest.mark.parametrize(("damage", "kind"), DAMAGES, ids=[f"{one.__name__[1:]} is {kind}" for one, kind in DAMAGES])
@given(size=st.integers(4, 30), data=st.data())
def test_damage_is_found(damage: Callable[[History, int], None], kind: str, size: int, data: st.DataObject) -> None:
    history = undamaged([True] * size, set())
    damage(history, data.draw(st.integers(1, size - 3), label="at"))
    assert kind in {found.kind for found in check(history)}


def test_every_rule_finds_some_damage() -> None:
    assert {kind for _, kind in DAMAGES} == set(RULES)


def test_a_record_of_a_compacted_topic_is_lost_only_without_a_later_one_of_its_key() -> None:
    history = undamaged([True] * 6, set(), compacted=True)
    assert [record.offset for record in history.final[WHERE]] == [4, 5]
    assert check(history) == []
    _lose(history, 5)
    assert {found.kind for found in check(history)} == {"lost", "read and lost"}


def test_an_old_leader_may_answer_an_old_end_under_its_own_epoch() -> None:
    history = undamaged([True] * 6, {3})
    late = EndRead(WHERE, 3, 0, 100.0, 101.0)
    history.ends.append(late)
    assert check(history) == []
    history.ends[-1] = late._replace(leader_epoch=1)
    assert {found.kind for found in check(history)} == {"stale read", "end went back"}


def test_an_old_leader_need_not_know_what_its_successor_acknowledged() -> None:
    """Record 2 has epoch 0, and was acknowledged when epoch 1 had begun: the end of epoch 0 may be before it."""
    history = undamaged([True] * 6, {3})
    history.sends[2] = history.sends[2]._replace(ended=29.75)
    history.ends[2] = history.ends[2]._replace(begun=29.8, ended=29.9, offset=2)
    assert check(history) == []
    history.sends[2] = history.sends[2]._replace(ended=29.25)
    assert {found.kind for found in check(history)} == {"stale read"}
    history.sends[2] = history.sends[2]._replace(ended=29.75)
    history.ends[2] = history.ends[2]._replace(leader_epoch=1)
    assert {found.kind for found in check(history)} == {"stale read"}
