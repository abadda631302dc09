"""The vote that survives a restart: Kafka's `quorum-state` file (KIP-595, data version 0), and which voters are final.

A voter with a directory id is more than Kafka's `votedId`: `votedKey` has all of it. It has a vote alone where another
voter was elected: Kafka takes who has voted for itself for a candidate, whatever came of it. Kafka's `appliedOffset` is
where the last committed change of voters ends: a restart takes it for committed, and needs no vote of those who left.

Owns the file's form and its atomic replacement. Must not know when a vote is given. A reader of the file sees the old
state or the new one, whole; and once `write_hard_state` returns, the new one also after a loss of power.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from pybroker.controller.errors import QuorumStateError
from pybroker.controller.quorum.voter_set import node_of
from pybroker.storage.atomic_file import replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE_NAME = "quorum-state"
_DATA_VERSION = 0


class HardState(NamedTuple):
    """Raft's term and vote: Kafka's leader epoch and voted id."""

    term: int
    vote: int | None
    """The key of a replica (`voter_set`)."""
    voters_offset: int = 0
    """End of the last change of voters that is known to be committed, 0 for none."""


def read_hard_state(directory: Path) -> HardState | None:
    """Return what the file holds, None where there is no file; raises `OSError` and `QuorumStateError`."""
    path = directory / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        fields = json.loads(text)
        version, term, vote = fields["data_version"], fields["leaderEpoch"], fields["votedId"]
    except (ValueError, KeyError, TypeError) as error:
        raise QuorumStateError(f"{path}: not a quorum state: {error!r}") from None
    if version not in (0, 1) or type(term) is not int or type(vote) is not int or term < 0:
        raise QuorumStateError(f"{path}: data version, leaderEpoch or votedId is none that is known: {text.strip()}")
    key, offset = fields.get("votedKey", vote), fields.get("appliedOffset", 0)
    if type(key) is not int or type(offset) is not int or offset < 0:
        raise QuorumStateError(f"{path}: votedKey or appliedOffset is none that is known: {text.strip()}")
    return HardState(term, key if key >= 0 else None, offset)


def write_hard_state(directory: Path, state: HardState, leader: int | None, voters: Sequence[int]) -> None:
    """Replace the file and wait until it is on the device; raises `OSError`."""
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
