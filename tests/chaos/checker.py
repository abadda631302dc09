"""Which promises of a log a history breaks, by the rules of Jepsen's workload for Kafka and those of groups.

Owns the rules, one function for each kind of damage; pure. Stands after a run of `tests/chaos/world.py`, and is itself
judged by damaged histories. A rule judges only what Kafka promises: an answer of a leader that does not know yet that
it was replaced may be old, so ends of a partition are compared within what their leader epoch must have.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tests.chaos.history import Commit, EndRead, History, LeaderEpoch, Outcome, Poll, Record, Send, Where


class Violation(NamedTuple):
    """A broken promise."""

    kind: str
    where: Where
    what: str


def check(history: History) -> list[Violation]:
    """Return every violation, by the order of `RULES`."""
    return [Violation(kind, where, what) for kind, rule in RULES.items() for where, what in rule(history)]


def summary(violations: Iterable[Violation], each: int = 5) -> str:
    """Return the counts of kinds, and the first `each` of every kind."""
    kinds: dict[str, list[Violation]] = defaultdict(list)
    for one in violations:
        kinds[one.kind].append(one)
    lines = []
    for kind, all_of_it in kinds.items():
        lines.append(f"{kind}: {len(all_of_it)}")
        lines += [f"  {one.where.topic}-{one.where.partition}: {one.what}" for one in all_of_it[:each]]
    return "\n".join(lines)


Found = Iterator[tuple[Where, str]]


def _inconsistent_offsets(history: History) -> Found:
    """An offset has one value, for every client and at every time."""
    seen: dict[tuple[Where, int], str] = {}
    for where, offset, value in _observations(history):
        first = seen.setdefault((where, offset), value)
        if first != value:
            yield where, f"offset {offset} is {first!r} for one client and {value!r} for another"


def _lost(history: History) -> Found:
    """What was acknowledged is in the log at the end, or a later record of its key where the topic is compacted."""
    kept = {where: {record.value for record in records} for where, records in history.final.items()}
    last = _last_records_of_keys(history)
    numbers = {(send.where, send.value): (send.producer, send.number) for send in history.sends}
    for send in history.sends:
        if send.outcome is not Outcome.ACKNOWLEDGED or send.value in kept.get(send.where, ()):
            continue
        later = last.get((send.where, send.key)) if send.where.topic in history.compacted else None
        if later is not None and _replaces(later, send, numbers.get((send.where, later.value))):
            continue
        yield send.where, f"{send.value!r} was acknowledged at offset {send.offset} and is not in the log"


def _seen_and_lost(history: History) -> Found:
    """What a consumer received stays in the log: it was below the high watermark."""
    kept = {where: {record.value for record in records} for where, records in history.final.items()}
    last = {key: record.offset for key, record in _last_records_of_keys(history).items()}
    for poll in history.polls:
        known = kept.get(poll.where, set())
        for record in poll.records:
            if record.value in known:
                continue
            if poll.where.topic in history.compacted and last.get((poll.where, record.key), -1) > record.offset:
                continue
            yield poll.where, f"{record.value!r} was read at offset {record.offset} and is not in the log at the end"


def _duplicates(history: History) -> Found:
    """A value that was sent once is at one offset."""
    seen: dict[tuple[Where, str], int] = {}
    for where, offset, value in _observations(history):
        first = seen.setdefault((where, value), offset)
        if first != offset:
            yield where, f"{value!r} is at offset {first} and at offset {offset}"


def _reordered(history: History) -> Found:
    """Records of one producer are in the order in which it sent them."""
    numbers = {(send.where, send.value): (send.producer, send.number) for send in history.sends}
    for where, records in history.final.items():
        latest: dict[str, tuple[int, Record]] = {}
        for record in sorted(records):
            producer, number = numbers.get((where, record.value), ("", -1))
            before = latest.get(producer)
            if producer and before is not None and before[0] > number:
                what = f"{record.value!r} at offset {record.offset} was sent before {before[1].value!r}"
                yield where, f"{what}, which is at offset {before[1].offset}"
            latest[producer] = (number, record)


def _aborted_reads(history: History) -> Found:
    """What certainly failed is never read."""
    failed = {(send.where, send.value) for send in history.sends if send.outcome is Outcome.FAILED}
    for where, offset, value in _readings(history):
        if (where, value) in failed:
            yield where, f"{value!r} failed, and was read at offset {offset}"


def _phantoms(history: History) -> Found:
    """What is read was sent."""
    sent = {(send.where, send.value) for send in history.sends}
    for where, offset, value in _readings(history):
        if (where, value) not in sent:
            yield where, f"{value!r} at offset {offset} was never sent"


def _nonmonotonic_polls(history: History) -> Found:
    """A reader that does not move by itself receives rising offsets."""
    latest: dict[tuple[Where, str], int] = {}
    for poll in sorted(history.polls, key=_begun):
        for record in poll.records:
            before = latest.get((poll.where, poll.reader), -1)
            if record.offset <= before:
                yield poll.where, f"{poll.reader} received offset {record.offset} after offset {before}"
            latest[poll.where, poll.reader] = record.offset


def _skips(history: History) -> Found:
    """A reader leaves out no record that is in the log."""
    offsets = {where: sorted(record.offset for record in records) for where, records in history.final.items()}
    latest: dict[tuple[Where, str], int] = {}
    for poll in sorted(history.polls, key=_begun):
        known = offsets.get(poll.where, [])
        for record in poll.records:
            before = latest.get((poll.where, poll.reader))
            if before is not None and record.offset > before + 1:
                at = bisect.bisect_right(known, before)
                if at < len(known) and known[at] < record.offset:
                    yield (
                        poll.where,
                        f"{poll.reader} received offset {record.offset} after {before}, without {known[at]}",
                    )
            latest[poll.where, poll.reader] = record.offset


def _unseen(history: History) -> Found:
    """A group that has read to the end has received every record; one of a later offset of its key where compacted."""
    read: dict[tuple[str, Where], set[int]] = defaultdict(set)
    for poll in history.polls:
        if poll.group is not None:
            read[poll.group, poll.where].update(record.offset for record in poll.records)
    for group in sorted(history.drained):
        for where, records in history.final.items():
            for record in records:
                if record.offset not in read[group, where]:
                    yield where, f"group {group} has never received {record.value!r} at offset {record.offset}"


def _stale_reads(history: History) -> Found:
    """The end that a leader returns is past what was acknowledged before, under its epoch or an earlier one.

    The epoch of an acknowledgement is the latest one that had begun by then. It may be later than that of the record:
    a leader that was cut off had appended and copied the record, and its successor acknowledged it as a repetition.
    """
    epochs = {
        (where, record.offset): record.leader_epoch for where, records in history.final.items() for record in records
    }
    sends = defaultdict(list)
    for send in history.sends:
        if send.outcome is Outcome.ACKNOWLEDGED and (send.where, send.offset) in epochs:
            sends[send.where].append(send)
    for where, reads in _by_partition(history.ends).items():
        acknowledged = sorted(sends[where], key=_ended)
        begun = history.leader_epochs.get(where, [])
        highest: dict[int, Send] = {}
        at = 0
        for read in sorted(reads, key=_begun):
            while at < len(acknowledged) and acknowledged[at].ended < read.begun:
                send = acknowledged[at]
                latest = bisect.bisect_right(begun, send.ended, key=_began)
                epoch = max(epochs[where, send.offset], begun[latest - 1].epoch if latest else -1)
                highest[epoch] = max(highest.get(epoch, send), send, key=_offset)
                at += 1
            due = max(
                (send for epoch, send in highest.items() if epoch <= read.leader_epoch), key=_offset, default=None
            )
            if due is not None and read.offset <= due.offset:
                yield (
                    where,
                    f"the end was {read.offset} under epoch {read.leader_epoch} at {read.begun:.3f} s after offset "
                    f"{due.offset} of epoch {epochs[where, due.offset]} was acknowledged at {due.ended:.3f} s; epochs: "
                    + ", ".join(f"{one.epoch} from {one.began:.3f}" for one in begun),
                )


def _falling_ends(history: History) -> Found:
    """The end for consumers never falls, from a leader of one epoch to one of the same or a later epoch."""
    for where, reads in _by_partition(history.ends).items():
        highest: dict[int, int] = {}
        ended = sorted(reads, key=_ended)
        at = 0
        for read in sorted(reads, key=_begun):
            while at < len(ended) and ended[at].ended < read.begun:
                earlier = ended[at]
                highest[earlier.leader_epoch] = max(highest.get(earlier.leader_epoch, -1), earlier.offset)
                at += 1
            due = max((offset for epoch, offset in highest.items() if epoch <= read.leader_epoch), default=-1)
            if read.offset < due:
                yield where, f"the end was {read.offset} under epoch {read.leader_epoch} after it had been {due}"


def _falling_commits(history: History) -> Found:
    """A group's offset never goes back: what is committed or read is at least what was committed before it began."""
    groups = defaultdict(list)
    for commit in history.commits:
        groups[commit.where, commit.group].append(commit)
    for (where, group), commits in groups.items():
        acknowledged = sorted((one for one in commits if not one.is_read), key=_ended)
        due = at = 0
        for one in sorted(commits, key=_begun):
            while at < len(acknowledged) and acknowledged[at].ended < one.begun:
                due = max(due, acknowledged[at].offset)
                at += 1
            if one.offset < due:
                did = "was read as" if one.is_read else "was set to"
                yield where, f"the offset of group {group} {did} {one.offset} after {due} was committed"


RULES: dict[str, Callable[[History], Found]] = {
    "inconsistent offsets": _inconsistent_offsets,
    "lost": _lost,
    "read and lost": _seen_and_lost,
    "duplicate": _duplicates,
    "reordered": _reordered,
    "aborted read": _aborted_reads,
    "phantom": _phantoms,
    "nonmonotonic poll": _nonmonotonic_polls,
    "skipped": _skips,
    "unseen": _unseen,
    "stale read": _stale_reads,
    "end went back": _falling_ends,
    "committed offset went back": _falling_commits,
}


def _begun(one: Poll | EndRead | Commit) -> float:
    return one.begun


def _ended(one: Send | EndRead | Commit) -> float:
    return one.ended


def _by_partition(reads: Iterable[EndRead]) -> dict[Where, list[EndRead]]:
    found: dict[Where, list[EndRead]] = defaultdict(list)
    for read in reads:
        found[read.where].append(read)
    return found


def _offset(send: Send) -> int:
    return send.offset


def _began(one: LeaderEpoch) -> float:
    return one.began


def _readings(history: History) -> Iterator[tuple[Where, int, str]]:
    for poll in history.polls:
        for record in poll.records:
            yield poll.where, record.offset, record.value
    for where, records in history.final.items():
        for record in records:
            yield where, record.offset, record.value


def _observations(history: History) -> Iterator[tuple[Where, int, str]]:
    for send in history.sends:
        if send.outcome is Outcome.ACKNOWLEDGED and send.offset >= 0:
            yield send.where, send.offset, send.value
    yield from _readings(history)


def _last_records_of_keys(history: History) -> dict[tuple[Where, str | None], Record]:
    last: dict[tuple[Where, str | None], Record] = {}
    for where, records in history.final.items():
        for record in records:
            before = last.get((where, record.key))
            if before is None or before.offset < record.offset:
                last[where, record.key] = record
    return last


def _replaces(later: Record, send: Send, sent_as: tuple[str, int] | None) -> bool:
    """Return whether compaction may have dropped what was sent for a later record of its key.

    Where the acknowledgement named no offset, the order of the producer's own records decides; what another producer
    wrote may be later.
    """
    if send.offset >= 0:
        return later.offset > send.offset
    producer, number = sent_as or ("", -1)
    return producer != send.producer or number > send.number
