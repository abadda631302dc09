"""Offsets that a transaction commits, and the group member that consumed the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pybroker.client.administration.groups import OffsetAndMetadata, Offsets
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import SettingError
from pybroker.client.settings import ConsumerSettings
from pybroker.client.transaction.group_metadata import GroupMetadata

GivenOffsets = Mapping[TopicPartition, OffsetAndMetadata | int]


@dataclass(frozen=True, slots=True)
class Consumed:
    """The next offsets to read, and the member of a group that has read the records before them."""

    offsets: Offsets
    group: GroupMetadata


class Consuming(Protocol):
    """A consumer, blocking or over asyncio."""

    def consumed(self) -> Consumed:
        """Return the positions and the group metadata that a transaction commits."""
        ...


def consumed_by(settings: ConsumerSettings, offsets: Offsets, identity: tuple[str, int, str | None]) -> Consumed:
    """Build the result of a consumer's `consumed`. Raises SettingError with auto-commit, or without a group."""
    if settings.group_id is None:
        raise SettingError("a transaction commits offsets for a group: set group.id of the consumer")
    if settings.commits_itself:
        raise SettingError("enable.auto.commit=true: the consumer commits outside the transaction: set it to false")
    return Consumed(offsets, GroupMetadata(settings.group_id, *identity))


def offsets_of(consumed: Consuming | GivenOffsets, group: GroupMetadata | str | None) -> Consumed:
    """Convert the arguments of `send_offsets_to_transaction`. Raises SettingError."""
    if not isinstance(consumed, Mapping):
        if group is not None:
            raise SettingError(f"group={group!r}: the consumer determines the group: omit group")
        return consumed.consumed()
    if not group:
        raise SettingError("offsets are committed for a group: pass a consumer, or offsets and a group")
    offsets = {p: OffsetAndMetadata(o) if isinstance(o, int) else o for p, o in consumed.items()}
    return Consumed(offsets, GroupMetadata(group) if isinstance(group, str) else group)
