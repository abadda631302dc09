"""The delta of delegation tokens.

Applies DelegationTokenRecord and RemoveDelegationTokenRecord, and counts the tokens of each owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.metadata.errors import RecordError
from pybroker.metadata.image import DelegationToken, DelegationTokensImage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.protocol.messages.records.delegation_token import DelegationTokenRecord
    from pybroker.protocol.messages.records.remove_delegation_token import RemoveDelegationTokenRecord


class TokensDelta:
    """The changed tokens."""

    __slots__ = ("_base", "changed")

    def __init__(self, base: DelegationTokensImage) -> None:
        self._base = base
        # Changed tokens by id; None for removed ones.
        self.changed: dict[str, DelegationToken | None] = {}

    def apply(self, record: DelegationTokenRecord) -> None:
        """Add a token, or replace it."""
        self.changed[record.token_id] = DelegationToken(
            token_id=record.token_id,
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issued_ms=record.issue_timestamp,
            expires_ms=record.expiration_timestamp,
            ends_ms=record.max_timestamp,
        )

    def apply_remove(self, record: RemoveDelegationTokenRecord) -> None:
        """Remove a token. Raises `RecordError` if it does not exist."""
        token_id = record.token_id
        if (self.changed[token_id] if token_id in self.changed else self._base.by_id.get(token_id)) is None:
            raise RecordError(f"{record}: no delegation token has this id")
        self.changed[token_id] = None

    def become(self, image: DelegationTokensImage) -> None:
        """Record the changes from the base to `image`, in a delta without changes."""
        before, after = self._base.by_id, image.by_id
        for token_id in after.keys_changed_since(before):
            if before.get(token_id) != after.get(token_id):
                self.changed[token_id] = after.get(token_id)

    def build(self) -> DelegationTokensImage:
        """Return the new image; the base itself without changes."""
        if not self.changed:
            return self._base
        base, counts = self._base, dict[str, int]()
        for token_id, token in self.changed.items():
            before = base.by_id.get(token_id)
            for one, change in ((before, -1), (token, 1)):
                if one is not None:
                    counts[one.owner] = counts.get(one.owner, base.owned.get(one.owner, 0)) + change
        return DelegationTokensImage(
            by_id=base.by_id.with_changes(self.changed),
            owned=base.owned.with_changes({owner: count or None for owner, count in counts.items()}),
        )


def tokens_image(tokens: Iterable[DelegationToken]) -> DelegationTokensImage:
    """Return an image of these tokens."""
    delta = TokensDelta(DelegationTokensImage())
    delta.changed.update((token.token_id, token) for token in tokens)
    return delta.build()
