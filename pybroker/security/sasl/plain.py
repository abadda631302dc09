"""PLAIN: a user and a password in plaintext (RFC 4616), verified against the users of the listener's JAAS config.

Owns the only message. Must not know where the users come from.

Source: Kafka's PlainSaslServer and PlainServerCallbackHandler.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from pybroker.security.sasl.steps import Proved, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.security.sasl.steps import Step

OTHER_AUTHORIZATION_ID = "Authentication failed: Client requested an authorization id that is different from username"
_INVALID = "Authentication failed: Invalid username or password"
_PARTS = 3


class PlainExchange:
    """The message of authorization id, user and password, separated by NUL."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users

    def step(self, token: bytes) -> Step:
        """Process the only message."""
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            return Refused("the message is not UTF-8")
        if len(parts) != _PARTS:
            return Refused(f"the message has {len(parts)} parts, not {_PARTS}")
        authorization_id, user, password = parts
        if not user or not password:
            return Refused(f"no {'password' if user else 'username'} was sent")
        known = self._users.get(user)
        # An unknown user is compared too, so that the time does not reveal it.
        if not _equal(password, "" if known is None else known) or known is None:
            return Refused(f"invalid username or password of {user!r}", _INVALID)
        if authorization_id not in ("", user):
            return Refused(f"{user!r} requests the authorization id {authorization_id!r}", OTHER_AUTHORIZATION_ID)
        return Proved(user)


def _equal(one: str, other: str) -> bool:
    """Compare in a time independent of the content of both texts; their hashes have equal length."""
    return hmac.compare_digest(hashlib.sha256(one.encode()).digest(), hashlib.sha256(other.encode()).digest())
