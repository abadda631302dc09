"""The delta of SCRAM credentials.

Applies UserScramCredentialRecord and RemoveUserScramCredentialRecord.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.metadata.errors import RecordError
from pybroker.metadata.image import ScramCredential, ScramImage

if TYPE_CHECKING:
    from pybroker.protocol.messages.records.remove_user_scram_credential import RemoveUserScramCredentialRecord
    from pybroker.protocol.messages.records.user_scram_credential import UserScramCredentialRecord


class ScramDelta:
    """The changed credentials."""

    __slots__ = ("_base", "changed")

    def __init__(self, base: ScramImage) -> None:
        self._base = base
        # Changed credentials by mechanism and user; None for removed ones.
        self.changed: dict[tuple[int, str], ScramCredential | None] = {}

    def apply(self, record: UserScramCredentialRecord) -> None:
        """Add a credential, or replace it."""
        self.changed[record.mechanism, record.name] = ScramCredential(
            salt=record.salt,
            stored_key=record.stored_key,
            server_key=record.server_key,
            iterations=record.iterations,
        )

    def apply_remove(self, record: RemoveUserScramCredentialRecord) -> None:
        """Remove a credential. Raises `RecordError` if it does not exist."""
        key = (record.mechanism, record.name)
        if (self.changed[key] if key in self.changed else self._base.of(key[0]).get(key[1])) is None:
            raise RecordError(f"{record}: the credential does not exist")
        self.changed[key] = None

    def become(self, image: ScramImage) -> None:
        """Record the changes from the base to `image`, in a delta without changes."""
        for scram in (self._base, image):
            for mechanism, users in scram.by_mechanism.items():
                for name in users:
                    credential = image.of(mechanism).get(name)
                    if credential != self._base.of(mechanism).get(name):
                        self.changed[mechanism, name] = credential

    def build(self) -> ScramImage:
        """Return the new image; the base itself without changes."""
        if not self.changed:
            return self._base
        became = {number: dict(users) for number, users in self._base.by_mechanism.items()}
        for (mechanism, name), credential in self.changed.items():
            users = became.setdefault(mechanism, {})
            if credential is None:
                users.pop(name, None)
            else:
                users[name] = credential
        touched = {mechanism for mechanism, _ in self.changed}
        return ScramImage(
            by_mechanism={
                number: users if number in touched else self._base.by_mechanism[number]
                for number, users in sorted(became.items())
                if users
            }
        )
