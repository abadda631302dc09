"""Damage of every kind to every file of a broker that was stopped or killed: what is lost, what is said, what is kept.

One table: what is done to the files, which acknowledged records can be read afterwards, what the start says or why it
refuses, and what `verify_directories` says before. For every row holds: a record that was in a file before the start is
in one after it, a start that gives an offset again says so, and a partition beside the damaged one is whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pybroker.node import NodeError
from pybroker.storage.errors import DirectoryError
from pybroker.storage.verification import verify_directories
from pybroker.testing import Broker
from tests.support.batches import batch_of, read_batches
from tests.support.wire import Wire, fetch, fetched, produce, produced

BATCHES, SEGMENT = 45, 10
TOPIC, BESIDE = "t", "u"
FIRST, MIDDLE, ACTIVE = (f"{TOPIC}-0/{base:020}" for base in (0, 10, 40))
POINTS, STARTS, MARKS, CLEANED = (
    f"{name}-offset-checkpoint" for name in ("recovery-point", "log-start", "replication", "cleaner")
)
META_LOG = "__cluster_metadata-0/00000000000000000000.log"
EVERYTHING = frozenset(range(BATCHES))
ADMITTED = ("given again", "the log ends", "lies beyond")

Harm = Callable[[Path], object]


class After(NamedTuple):
    """What a start on damaged files comes to. `lost` may be more than what cannot be read where `fuzzy`."""

    lost: frozenset[int] = frozenset()
    reports: str | None = None
    refuses: str | None = None
    status: int = 1
    names: str = ""
    fuzzy: bool = False


class Case(NamedTuple):
    """Damage, and what becomes of it after a clean stop and after a kill; None: not to be had there."""

    name: str
    harm: Harm
    clean: After | None
    killed: After | None


def value(number: int) -> bytes:
    """The record of an offset: a hundred thousand bytes that no other has."""
    return b"<%04d>" % number * 17_000


def batch_place(segment: Path, index: int) -> int:
    """Where a batch of a segment begins."""
    return sum(len(batch.raw) for batch in read_batches(segment.read_bytes())[:index])


def flip(name: str, at: Callable[[Path], int]) -> Harm:
    """Turn one bit of a file around."""

    def harm(root: Path) -> None:
        path = root / name
        with path.open("r+b") as file:
            place = at(path)
            file.seek(place)
            old = file.read(1)
            file.seek(place)
            file.write(bytes([old[0] ^ 4]))

    return harm


def in_batch(index: int, byte: int) -> Callable[[Path], int]:
    """A byte of the batch of that number in a segment."""
    return lambda path: batch_place(path, index) + byte


def cut(name: str, index: int, byte: int = 0) -> Harm:
    """End a segment inside of a batch."""

    def harm(root: Path) -> None:
        with (root / name).open("r+b") as file:
            file.truncate(batch_place(root / name, index) + byte)

    return harm


def write(name: str, data: bytes | None) -> Harm:
    """Replace a file, or remove it."""

    def harm(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        if data is not None:
            (root / name).write_bytes(data)

    return harm


def append(name: str, data: bytes) -> Harm:
    """Add bytes to a file."""

    def harm(root: Path) -> None:
        with (root / name).open("ab") as file:
            file.write(data)

    return harm


def swap(one: str, other: str) -> Harm:
    """Give two files each other's names."""

    def harm(root: Path) -> None:
        (root / one).rename(root / "aside")
        (root / other).rename(root / one)
        (root / "aside").rename(root / other)

    return harm


def remove_tree(name: str) -> Harm:
    """Remove a directory."""
    return lambda root: shutil.rmtree(root / name)


def unreadable(name: str) -> Harm:
    """Put something in a file's place that nobody can read as one, whatever his rights."""

    def harm(root: Path) -> None:
        (root / name).unlink()
        (root / name).mkdir()

    return harm


def newest_snapshot(harm: Callable[[str], Harm]) -> Harm:
    """Harm the snapshot that a clean start reads."""
    return lambda root: harm(str(max(root.glob(f"{TOPIC}-0/*.snapshot")).relative_to(root)))(root)


def halve(name: str) -> Harm:
    """Flip a bit in the middle of a file."""
    return flip(name, lambda path: path.stat().st_size // 2)


def offsets(*spans: tuple[int, int]) -> frozenset[int]:
    """All offsets of these spans."""
    return frozenset(number for begin, end in spans for number in range(begin, end))


NOISE, ZEROS = b"\xde\xad\xbe\xef" * 50, bytes(300)
BEHIND = "damaged at byte"
REBUILT = "is missing or damaged: both are built anew"
FROM_LOG = "leader epochs are read from the log instead"
NO_META_LOG = "metadata log"


def log_cases() -> Iterator[Case]:
    """Damage to the records themselves."""
    for what, byte in (("body", 5000), ("header", 22), ("checksum", 18)):
        flipped = flip(f"{MIDDLE}.log", in_batch(2, byte))
        at_read = After(offsets((12, 13)), None, names=f"{MIDDLE}.log")
        yield Case(f"middle-{what}-flipped", flipped, at_read, After(offsets((12, 45)), BEHIND, names=f"{MIDDLE}.log"))
        flipped = flip(f"{ACTIVE}.log", in_batch(1, byte))
        at_read = After(offsets((41, 42)), None, names=f"{ACTIVE}.log")
        yield Case(f"active-{what}-flipped", flipped, at_read, After(offsets((41, 45)), BEHIND, names=f"{ACTIVE}.log"))
        flipped = flip(f"{FIRST}.log", in_batch(0, byte))
        at_read = After(offsets((0, 1)), None, names=f"{FIRST}.log")
        yield Case(f"first-{what}-flipped", flipped, at_read, After(EVERYTHING, BEHIND, names=f"{FIRST}.log"))
    for what, byte in (("length", 10), ("offset", 6)):
        flipped = flip(f"{MIDDLE}.log", in_batch(2, byte))
        some = After(offsets((12, 20)), None, names=f"{MIDDLE}.log", fuzzy=True)
        rest = After(offsets((12, 45)), "log ends before", names=f"{MIDDLE}.log", fuzzy=True)
        yield Case(f"middle-{what}-flipped", flipped, some, rest)
    last = After(offsets((44, 45)), BEHIND, names=f"{ACTIVE}.log")
    yield Case("active-last-body-flipped", flip(f"{ACTIVE}.log", in_batch(4, 5000)), last._replace(reports=None), last)
    yield Case("active-cut-in-a-batch", cut(f"{ACTIVE}.log", 4, 5000), last, last)
    short = After(offsets((44, 45)), "the log ends before offset 44", names=f"{ACTIVE}.log")
    yield Case("active-cut-between-batches", cut(f"{ACTIVE}.log", 4), short, short)
    removed = After(offsets((40, 45)), "the log ends before offset 40")
    yield Case("active-empty", write(f"{ACTIVE}.log", b""), removed, removed)
    yield Case("active-removed", write(f"{ACTIVE}.log", None), removed, removed)
    hidden = After(offsets((15, 20)), None, names=f"{MIDDLE}.log")
    yield Case("middle-cut-in-a-batch", cut(f"{MIDDLE}.log", 5, 5000), hidden, After(offsets((15, 45)), BEHIND))
    gap = After(offsets((15, 45)), "does not begin where that one ends")
    yield Case("middle-cut-between-batches", cut(f"{MIDDLE}.log", 5), After(offsets((15, 20))), gap)
    hole = After(offsets((10, 45)), "does not begin where that one ends")
    yield Case("middle-empty", write(f"{MIDDLE}.log", b""), After(offsets((10, 20))), hole)
    yield Case("middle-removed", write(f"{MIDDLE}.log", None), After(offsets((10, 20))), hole)
    # After a crash retention may have removed it, and the new start was not written down.
    lost = After(offsets((0, 10)), "their segments are not there")
    yield Case("first-removed", write(f"{FIRST}.log", None), lost, lost._replace(reports=None, status=0))
    for what, data in (("noise", NOISE), ("zeros", ZEROS)):
        torn = After(reports="a write that did not end", status=0, names=f"{ACTIVE}.log")
        yield Case(f"active-{what}-appended", append(f"{ACTIVE}.log", data), After(reports=BEHIND), torn)
        inside = After(names=f"{MIDDLE}.log")
        reported = inside._replace(reports="are no whole batch and are cut")
        yield Case(f"middle-{what}-appended", append(f"{MIDDLE}.log", data), inside, reported)
    some = After(offsets((0, 20)), None, fuzzy=True)
    every = After(offsets((0, 10), (20, 45)), "log ends before")
    yield Case("first-and-middle-swapped", swap(f"{FIRST}.log", f"{MIDDLE}.log"), some, every)
    closed = After(EVERYTHING, "cannot be opened", status=2, names=f"{ACTIVE}.log")
    yield Case("active-unreadable", unreadable(f"{ACTIVE}.log"), closed, closed)


def index_cases() -> Iterator[Case]:
    """Damage to what is derived from the records: nothing is lost."""
    for kind in ("index", "timeindex"):
        name = f"{MIDDLE}.{kind}"
        # After a kill the next start makes these indexes anew, so that they are no damage.
        remade = After(status=0, names=name)
        yield Case(f"{kind}-flipped", halve(name), After(names=name), remade)
        yield Case(f"{kind}-removed", write(name, None), After(reports=REBUILT, names=name), After(status=0))
        yield Case(f"{kind}-noise", write(name, NOISE[:101]), After(reports=REBUILT, names=name), remade)
        yield Case(f"{kind}-noise-appended", append(name, NOISE[:5]), After(reports=REBUILT, names=name), remade)
    yield Case("timeindex-empty", write(f"{MIDDLE}.timeindex", b""), After(reports=REBUILT), After(status=0))
    yield Case("index-empty", write(f"{MIDDLE}.index", b""), After(names=f"{MIDDLE}.index"), After(status=0))
    both = swap(f"{MIDDLE}.index", f"{MIDDLE}.timeindex")
    yield Case("indexes-swapped", both, After(fuzzy=True), After(status=0))
    read = After(reports="the producers' state is read from the log instead", names=".snapshot")
    yield Case("snapshot-flipped", newest_snapshot(halve), read, None)
    yield Case("snapshot-empty", newest_snapshot(lambda name: write(name, b"")), read, None)
    yield Case("snapshot-removed", newest_snapshot(lambda name: write(name, None)), After(status=0), None)


def small_file_cases() -> Iterator[Case]:
    """Damage to the small files of a partition."""
    name = f"{TOPIC}-0/leader-epoch-checkpoint"
    for what, data in (("removed", None), ("empty", b""), ("noise", NOISE)):
        reported = After(reports=FROM_LOG, names=name)
        yield Case(f"epochs-{what}", write(name, data), reported, reported)
    other = After(names=name)
    yield Case("epochs-changed", write(name, b"0\n1\n7 0\n"), other, other)
    name = f"{TOPIC}-0/partition.metadata"
    for what, data in (("empty", b""), ("noise", NOISE)):
        closed = After(EVERYTHING, "cannot be opened", names=name)
        yield Case(f"partition-metadata-{what}", write(name, data), closed, closed)
    yield Case("partition-metadata-removed", write(name, None), After(names=name), After(names=name))
    whole = After(EVERYTHING, "the log ends before offset 0")
    yield Case("directory-removed", remove_tree(f"{TOPIC}-0"), whole, whole._replace(status=0))


def checkpoint_cases() -> Iterator[Case]:
    """Damage to what stands at the root of the log directory."""
    for name in (POINTS, MARKS, STARTS):
        missing = After(reports=f"{name} is missing", names=name)
        yield Case(f"{name}-removed", write(name, None), missing, None)
        for what, data in (("empty", b""), ("noise", NOISE), ("large", b"0\n1\nt 0 9999999999999999999\n")):
            ignored = After(reports="ignoring the file", names=name)
            yield Case(f"{name}-{what}", write(name, data), ignored, ignored)
    beyond = After(reports="the log ends before offset 45; records up to offset 999", names=TOPIC)
    yield Case("recovery-point-beyond", write(POINTS, b"0\n1\nt 0 999\n"), beyond, beyond)
    yield Case("high-watermark-beyond", write(MARKS, b"0\n1\nt 0 999\n"), beyond, beyond)
    start = After(reports="which lies beyond the log's end 45", names=TOPIC)
    yield Case("log-start-beyond", write(STARTS, b"0\n1\nt 0 999\n"), start, start._replace(lost=EVERYTHING))
    yield Case(f"{CLEANED}-noise", write(CLEANED, NOISE), After(names=CLEANED), After(names=CLEANED))
    refused = After(refuses="meta.properties", names="meta.properties")
    yield Case("meta-properties-removed", write("meta.properties", None), refused, refused)
    yield Case("meta-properties-empty", write("meta.properties", b""), refused, refused)
    yield Case("meta-properties-noise", write("meta.properties", NOISE), refused, refused)
    yield Case("clean-shutdown-removed", write(".kafka_cleanshutdown", None), After(status=0), None)
    yield Case("clean-shutdown-empty", write(".kafka_cleanshutdown", b""), After(status=0), None)
    yield Case("clean-shutdown-noise", write(".kafka_cleanshutdown", NOISE), After(status=0), None)


def metadata_cases() -> Iterator[Case]:
    """Damage to the metadata log: the start is refused, but for a write that did not end."""
    damaged = After(refuses=f"{NO_META_LOG} .* is damaged", names=META_LOG)
    yield Case("metadata-flipped", flip(META_LOG, in_batch(2, 70)), damaged, damaged)
    yield Case("metadata-length-flipped", flip(META_LOG, in_batch(2, 10)), damaged, damaged)
    cut_off = Case(
        "metadata-noise-appended", append(META_LOG, NOISE), damaged, After(reports="of an incomplete write", status=0)
    )
    yield cut_off
    yield Case("metadata-zeros-appended", append(META_LOG, ZEROS), damaged, cut_off.killed)
    shorter = After(refuses=f"{NO_META_LOG} .* lost records: .* without a record of", status=0)
    yield Case("metadata-cut-between-batches", cut(META_LOG, 3), shorter._replace(status=1), shorter)
    yield Case("metadata-cut-in-a-batch", cut(META_LOG, 3, 70), damaged, shorter)
    empty = After(refuses=f"{NO_META_LOG} .* is empty")
    yield Case("metadata-empty", write(META_LOG, b""), empty, empty)
    yield Case("metadata-file-removed", write(META_LOG, None), empty, empty)
    missing = After(refuses=f"{NO_META_LOG} .* is missing")
    yield Case("metadata-removed", remove_tree("__cluster_metadata-0"), missing, missing)
    state = After(refuses="quorum-state", status=0)
    yield Case("quorum-state-noise", write("__cluster_metadata-0/quorum-state", b"?"), state, state)


CASES = [*log_cases(), *index_cases(), *small_file_cases(), *checkpoint_cases(), *metadata_cases()]
ROWS = [
    pytest.param(case, state, after, id=f"{case.name}-{state}")
    for case in CASES
    for state, after in (("clean", case.clean), ("killed", case.killed))
    if after is not None
]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What a broker leaves that was stopped, and one that was killed before its first checkpoint of recovery points."""
    root = tmp_path_factory.mktemp("left")
    broker = Broker(directory=root / "clean", log_segment_bytes=1 << 20, log_index_interval_bytes=4096)
    with broker, Wire(broker.bootstrap_servers) as wire:
        for topic in (TOPIC, BESIDE):
            new = {"name": topic, "num_partitions": 1, "replication_factor": 1}
            wire.call("CreateTopics", 7, topics=[new], timeout_ms=10_000)
            given = wire.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60_000)
            for number in range(BATCHES if topic == TOPIC else 3):
                sent = batch_of(value(number), producer_id=given.producer_id, producer_epoch=0, base_sequence=number)
                assert produced(wire.query(produce(topic, sent))).error_code == 0
        shutil.copytree(root / "clean", root / "killed")
    for name in (POINTS, STARTS, CLEANED):
        (root / "killed" / name).unlink(missing_ok=True)
    (root / "killed" / MARKS).write_text(f"0\n2\n{TOPIC} 0 {BATCHES}\n{BESIDE} 0 3\n")
    return {"clean": root / "clean", "killed": root / "killed"}


@pytest.mark.parametrize(("case", "state", "after"), ROWS)
def test_damage_is_said_and_hides_nothing(
    case: Case, state: str, after: After, left: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    shutil.copytree(left[state], data)
    case.harm(data)
    before = kept(data)
    check_verification(data, after)
    files = {path: path.read_bytes() for path in data.rglob("*") if path.is_file() and path.name != ".lock"}
    broker = Broker(directory=data)
    if after.refuses is not None:
        with pytest.raises(NodeError, match=after.refuses):
            broker.start()
        assert {path: path.read_bytes() for path in files} == files, "a start that is refused changes nothing"
        return
    with broker, Wire(broker.bootstrap_servers) as wire:
        warned = "\n".join(record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR"))
        assert after.reports is None or after.reports in warned
        check_readable(wire, after)
        response = produced(wire.query(produce(TOPIC, batch_of(b"new"))))
        given_again = response.error_code == 0 and response.base_offset < BATCHES
        assert not given_again or any(words in warned for words in ADMITTED)
        assert kept(data) >= before, "what was in some file is in one"
        assert read_at(wire, 2, BESIDE)


def check_verification(data: Path, after: After) -> None:
    """Hold what a look over the files says against the row."""
    try:
        found = verify_directories([data], data)
    except DirectoryError as error:
        pytest.fail(str(error))
    status = 1 if found.damaged else 0 if found.complete else 2
    listed = "\n".join(map(str, found.findings))
    assert status == after.status, listed
    assert not after.names or any(after.names in str(finding.path) for finding in found.findings), listed


def check_readable(wire: Wire, after: After) -> None:
    """Hold the records that can be read against the row."""
    unread = {number for number in EVERYTHING if not read_at(wire, number)}
    if after.fuzzy:
        assert unread <= after.lost
    else:
        assert unread == after.lost


def read_at(wire: Wire, number: int, topic: str = TOPIC) -> bool:
    """Whether the record at an offset is what was written there."""
    part = fetched(wire.query(fetch(topic, number, partition_max_bytes=1)))
    if part.error_code or not part.records:
        return False
    try:
        batch, *_ = read_batches(part.records)
        return batch.base_offset == number and batch.crc_holds and batch.values == [value(number)]
    except (ValueError, AssertionError, IndexError):
        return False


def kept(root: Path) -> set[int]:
    """The records that are whole in some file."""
    wanted = {number: value(number)[:3000] for number in EVERYTHING}
    texts: Iterable[bytes] = [path.read_bytes() for path in root.rglob(f"{TOPIC}-0*/*.log*") if path.is_file()]
    return {number for number, part in wanted.items() if any(part in text for text in texts)}


def test_a_broker_that_runs_is_not_looked_over(tmp_path: Path) -> None:
    with Broker(directory=tmp_path), pytest.raises(DirectoryError, match="is locked by another broker"):
        verify_directories([tmp_path], tmp_path)


def test_directories_that_are_whole_have_no_findings(left: dict[str, Path]) -> None:
    for state in ("clean", "killed"):
        found = verify_directories([left[state]], left[state])
        assert (found.findings, found.logs, found.segments) == ([], 3, 7)
