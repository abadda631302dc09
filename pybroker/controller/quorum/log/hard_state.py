"""The persistent vote: Kafka's `quorum-state` file (KIP-595, data version 0), and the last final change of voters.

A voter with a directory id does not fit into Kafka's `votedId`, so `votedKey` contains the whole key. If another voter
than the voted one was elected, `votedId` is -1: Kafka takes a voter that voted for itself for a candidate. Kafka's
`appliedOffset` is the end of the last committed change of voters. A restart takes this change as committed, and needs
no vote of removed voters.

Owns the file's format and its atomic replacement. Must not decide about votes. A reader of the file gets either the old
or the new state. After `write_hard_state` returns, the new state survives a power failure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from pybroker.controller.errors import QuorumStateError
from pybroker.controller.quorum.voters.voter_set import node_of
from pybroker.storage.log_dirs.atomic_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE_NAME = "quorum-state"
_DATA_VERSION = 0
_NUMBERS = {
    "leaderEpoch": (0, 2**31 - 1),
    "votedId": (-1, 2**31 - 1),
    "votedKey": (-1, 2**63 - 1),
    "appliedOffset": (0, 2**63 - 1),
}
"""The minimum and maximum of each field that is read."""


class HardState(NamedTuple):
    """Raft's term and vote: Kafka's leader epoch and voted id."""

    term: int
    vote: int | None
    """The key of a replica (`voter_set`)."""
    voters_offset: int = 0
    """End offset of the last change of voters that is known to be committed, 0 for none."""


def read_hard_state(directory: Path) -> HardState | None:
    """Return the content of the file, None without a file; raises `OSError` and `QuorumStateError`."""
    path = directory / FILE_NAME
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise _damaged(path, f"not UTF-8 at byte {error.start}") from None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise _damaged(path, "not a JSON object")
    if fields.get("data_version") not in (0, 1):
        raise _damaged(path, "expected data_version 0 or 1")
    fields = {"appliedOffset": 0, "votedKey": fields.get("votedId"), **fields}
    for name, (lowest, highest) in _NUMBERS.items():
        if type(fields.get(name)) is not int or not lowest <= fields[name] <= highest:
            raise _damaged(path, f"expected {name}, an integer from {lowest} to {highest}")
    key = fields["votedKey"]
    return HardState(fields["leaderEpoch"], key if key >= 0 else None, fields["appliedOffset"])


def _damaged(path: Path, what: str) -> QuorumStateError:
    return QuorumStateError(
        f"{path} is damaged: {what}. The node does not start: restore the file from a backup. The only voter of a "
        "quorum may start without the file; one of several voters could then vote twice in an epoch"
    )


def write_hard_state(directory: Path, state: HardState, leader: int | None, voters: Sequence[int]) -> None:
    """Replace the file and wait for the sync; raises `OSError`."""
    voted = -1 if state.vote is None else node_of(state.vote)
    shown = voted if leader is None or leader == voted else -1
    fields: dict[str, object] = {
        "clusterId": "",
        "leaderId": -1 if leader is None else leader,
        "leaderEpoch": state.term,
        "votedId": shown,
        "appliedOffset": state.voters_offset,
        "currentVoters": [{"voterId": voter} for voter in voters],
        "data_version": _DATA_VERSION,
    }
    if state.vote is not None and state.vote != shown:
        fields["votedKey"] = state.vote
    replace_file(directory / FILE_NAME, json.dumps(fields, separators=(",", ":")))
