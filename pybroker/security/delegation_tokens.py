"""Authentication by delegation token (KIP-48): the HMAC of a token id, in base64, is the password of a SCRAM login.

Owns the secret that all nodes share (`delegation.token.secret.key`) and the values derived from it: HMACs, the token
of an HMAC, and the SCRAM credential of each token. Must not know authorization of token requests.

Responses before the client's proof depend only on the token id and the secret, so they do not reveal whether a token
exists. The thousands of hashes of a token's credential are computed once, at the first login with the token.

Source: Kafka's DelegationTokenControlManager, DelegationTokenManager and ScramServerCallbackHandler.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from pybroker.metadata.image import ScramCredential
from pybroker.metadata.persistent_map import PersistentMap
from pybroker.security.scram import salted_password, server_key, stored_key
from pybroker.security.scram_mechanisms import LEAST_ITERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.metadata.image import DelegationToken, DelegationTokensImage
    from pybroker.security.scram_mechanisms import ScramMechanism

ITERATIONS = LEAST_ITERATIONS
_SALT_BYTES = 24
_USER = "User:"


class TokenLogin(msgspec.Struct, frozen=True):
    """The values for verifying a login by token."""

    credential: Callable[[], ScramCredential]
    """Returns the credential.

    The first call for a token computes thousands of hashes: not for the loop. For any thread.
    """
    user: str
    """The principal of the client: the token's owner."""
    expires_ms: int
    """Expiry of the token, ms since 1970."""


class DelegationTokens:
    """The tokens of a cluster, for authentication on one of its nodes. Used from one event loop."""

    def __init__(self, secret: str, image: Callable[[], DelegationTokensImage], wall_ms: Callable[[], int]) -> None:
        """`image` returns the current tokens, `wall_ms` the current time."""
        self._secret = secret.encode()
        self._image = image
        self.wall_ms = wall_ms
        """Returns the current time, ms since 1970."""
        # Invariant: `_ids` has the ids of `_followed` by HMAC. Removed tokens' credentials are removed later.
        self._followed: PersistentMap[DelegationToken] = PersistentMap()
        self._ids: dict[bytes, str] = {}
        self._credentials: dict[tuple[str, str], ScramCredential] = {}

    def __repr__(self) -> str:
        return "DelegationTokens([hidden])"

    def hmac(self, token_id: str) -> bytes:
        """Return the HMAC of a token id, 64 bytes."""
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def find(self, proof: bytes) -> DelegationToken | None:
        """Return the delegation token with this HMAC, or None."""
        tokens = self._follow()
        token_id = self._ids.get(bytes(proof))
        return None if token_id is None else tokens[token_id]

    def salt(self, token_id: str) -> bytes:
        """Return the salt of a token's password, also for an unknown token id."""
        return hmac.digest(self._secret, b"salt of " + token_id.encode(), "sha256")[:_SALT_BYTES]

    def login(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        """Return the values for verifying a login; None for an unknown or expired token."""
        token = self._follow().get(token_id)
        if token is None or min(token.expires_ms, token.ends_ms) <= self.wall_ms():
            return None
        credential = partial(self._credential, mechanism, token_id)
        return TokenLogin(credential, token.owner.removeprefix(_USER), min(token.expires_ms, token.ends_ms))

    def _credential(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential:
        key = token_id, mechanism.name
        found = self._credentials.get(key)
        if found is None:
            found = self._credentials[key] = self._derive(mechanism, token_id)
        return found

    def _derive(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential:
        salt = self.salt(token_id)
        salted = salted_password(mechanism, b64encode(self.hmac(token_id)).decode(), salt, ITERATIONS)
        return ScramCredential(
            salt=salt,
            stored_key=stored_key(mechanism, salted),
            server_key=server_key(mechanism, salted),
            iterations=ITERATIONS,
        )

    def _follow(self) -> PersistentMap[DelegationToken]:
        """Apply the tokens of the newest image."""
        tokens, before = self._image().by_id, self._followed
        if tokens is not before:
            is_any_removed = False
            for token_id in tokens.keys_changed_since(before):
                if token_id not in tokens:
                    is_any_removed = True
                    del self._ids[self.hmac(token_id)]
                elif token_id not in before:
                    self._ids[self.hmac(token_id)] = token_id
            if is_any_removed:
                kept = list(self._credentials.items())  # copied at once: a thread may add one
                self._credentials = {key: credential for key, credential in kept if key[0] in tokens}
            self._followed = tokens
        return tokens
