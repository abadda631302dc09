"""SCRAM: a client proves that it knows a password, without sending it, and the broker that it knows the user.

Owns the messages of the broker's side. Unknown users get the same responses as known ones until the client's proof
is wrong. Their salt and iterations are derived from the name and a secret, so they are equal in each attempt and on
every broker. Must not know where credentials are stored.

Source: RFC 5802; Kafka's ScramSaslServer and ScramMessages, which reject an unknown user at the first message.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from pybroker.metadata.image import ScramCredential
from pybroker.security.delegation_tokens import ITERATIONS as TOKEN_ITERATIONS
from pybroker.security.sasl.plain import OTHER_AUTHORIZATION_ID
from pybroker.security.sasl.steps import Challenge, Proved, Refused, Work
from pybroker.security.scram import client_is_right, server_signature
from pybroker.security.scram_mechanisms import LEAST_ITERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.security.delegation_tokens import TokenLogin
    from pybroker.security.sasl.steps import Outcome, Step
    from pybroker.security.scram_mechanisms import ScramMechanism

_LONGEST_MESSAGE = 8192
"""Maximum bytes of a message; the exchange keeps the first message until the second one arrives."""
_NAME = r"(?:[^=,\x00]|=2C|=3D)+"
_CLIENT_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<extensions>(?:,[A-Za-z]+=[^,\x00]+)*))"
)
_CLIENT_FINAL = re.compile(
    r"(?P<bare>c=(?P<channel>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]+=[^,\x00]+)*?)"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_TOKEN_AUTH = re.compile(r",tokenauth=true(?:,|\Z)", re.IGNORECASE)
_SALT_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyz"


class TokenLogins(Protocol):
    """The delegation tokens, for exchanges."""

    def salt(self, token_id: str) -> bytes:
        """Return the salt of a token's password, also for an unknown token id."""

    def login(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        """Return the values for verifying a login; None for an unknown or expired token."""


class _Begun(msgspec.Struct, frozen=True):
    """The values for verifying the second message."""

    name: str
    credential: ScramCredential
    is_known: bool
    gs2: str
    nonce: str
    client_first: str
    server_first: str
    by_token: bool = False


class ScramExchange:
    """Two messages of the client, two of the broker."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        credentials: Mapping[str, ScramCredential],
        nonce: str,
        decoys: Decoys,
        tokens: TokenLogins | None = None,
    ) -> None:
        """`credentials` are by user, `nonce` is random and unique to this exchange; without `tokens` there are none."""
        self._tokens = tokens
        self._mechanism = mechanism
        self._decoys = decoys
        self._credentials = credentials
        self._nonce = nonce
        # None before the first message.
        self._begun: _Begun | None = None

    def step(self, token: bytes) -> Step:
        """Process a message of the client."""
        try:
            message = token.decode()
        except UnicodeDecodeError:
            return Refused("the message is not UTF-8")
        if len(token) > _LONGEST_MESSAGE:
            return Refused(f"the message has {len(token)} bytes, at most {_LONGEST_MESSAGE} are read")
        return self._first(message) if self._begun is None else self._final(message, self._begun)

    def _first(self, message: str) -> Step:
        found = _CLIENT_FIRST.fullmatch(message)
        if found is None:
            return Refused("the first message is not a SCRAM message without channel binding")
        name = _unescaped(found["name"])
        if found["authzid"] is not None and _unescaped(found["authzid"]) != name:
            return Refused(f"{name!r} requests {_unescaped(found['authzid'])!r}", OTHER_AUTHORIZATION_ID)
        nonce = found["nonce"] + self._nonce
        if _TOKEN_AUTH.search(found["extensions"]):
            return self._first_by_token(name, nonce, found)
        known = self._credentials.get(name)
        decoy = self._decoys.of(name, self._credentials)  # Made for every user: no timing difference.
        credential = decoy if known is None else known
        server_first = _server_first(nonce, credential)
        self._begun = _Begun(name, credential, known is not None, found["gs2"], nonce, found["bare"], server_first)
        return Challenge(server_first.encode())

    def _first_by_token(self, token_id: str, nonce: str, found: re.Match[str]) -> Step:
        """Respond equally for every token id. Whether the token exists is checked after the client's proof."""
        if self._tokens is None:
            return Refused("the client sent a delegation token, but tokens are disabled (delegation.token.secret.key)")
        salt = self._tokens.salt(token_id)
        credential = ScramCredential(salt=salt, stored_key=b"", server_key=b"", iterations=TOKEN_ITERATIONS)
        server_first = _server_first(nonce, credential)
        self._begun = _Begun(
            token_id, credential, False, found["gs2"], nonce, found["bare"], server_first, by_token=True
        )
        return Challenge(server_first.encode())

    def _final(self, message: str, begun: _Begun) -> Step:
        found = _CLIENT_FINAL.fullmatch(message)
        if found is None:
            return Refused("the last message is not a SCRAM message")
        try:
            channel, proof = (b64decode(found[part], validate=True) for part in ("channel", "proof"))
        except binascii.Error:
            return Refused("the last message contains invalid base64")
        if channel != begun.gs2.encode():
            return Refused("the channel binding differs from the one in the first message")
        # Compared completely (RFC 5802, CVE-2024-56128). As Kafka, this rejects librdkafka before 2.6.1.
        if not hmac.compare_digest(found["nonce"], begun.nonce):
            return Refused("the nonce belongs to another exchange")
        auth_message = ",".join((begun.client_first, begun.server_first, found["bare"])).encode()
        if begun.by_token:
            login = None if self._tokens is None else self._tokens.login(self._mechanism, begun.name)
            if login is None:
                return Refused(f"the delegation token {begun.name!r} does not exist or has expired")
            return Work(partial(_decide_by_token, self._mechanism, login, begun.name, auth_message, proof))
        credential = begun.credential
        is_right = client_is_right(self._mechanism, credential.stored_key, auth_message, proof)
        if not is_right or not begun.is_known:
            return Refused(f"invalid username or password of {begun.name!r}")
        signature = server_signature(self._mechanism, credential.server_key, auth_message)
        return Proved(begun.name, b"v=" + b64encode(signature))


def _decide_by_token(
    mechanism: ScramMechanism, login: TokenLogin, token_id: str, auth_message: bytes, proof: bytes
) -> Outcome:
    credential = login.credential()
    if not client_is_right(mechanism, credential.stored_key, auth_message, proof):
        return Refused(f"the proof does not match the delegation token {token_id!r}")
    signature = server_signature(mechanism, credential.server_key, auth_message)
    return Proved(login.user, b"v=" + b64encode(signature), login.expires_ms, by_token=True)


def _server_first(nonce: str, credential: ScramCredential) -> str:
    return f"r={nonce},s={b64encode(credential.salt).decode()},i={credential.iterations}"


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


class Decoys:
    """Credentials for unknown users, with a salt and iterations like those of a known one.

    They are derived from a secret that is equal on all brokers: the stored key of the first user by name.
    """

    def __init__(self) -> None:
        # Invariant: `_models` and `_secret` are derived from `_credentials`.
        self._credentials: Mapping[str, ScramCredential] = {}
        self._models: tuple[ScramCredential, ...] = (_MODEL,)
        self._secret = b""

    def of(self, name: str, credentials: Mapping[str, ScramCredential]) -> ScramCredential:
        """Return the credential of an unknown name, the same in each call with equal credentials."""
        if credentials is not self._credentials:
            names = sorted(credentials)
            self._models = tuple(credentials[name] for name in names) or (_MODEL,)
            self._secret = hashlib.sha256(self._models[0].stored_key).digest()
            self._credentials = credentials
        digest = hmac.digest(self._secret, name.encode(), "sha256")
        like = self._models[int.from_bytes(digest[:8]) % len(self._models)]
        salt = hashlib.shake_256(digest).digest(len(like.salt))
        if all(byte in _SALT_ALPHABET for byte in like.salt):  # As Kafka's tools create them.
            salt = bytes(_SALT_ALPHABET[byte % len(_SALT_ALPHABET)] for byte in salt)
        return ScramCredential(
            salt=salt, stored_key=bytes(len(like.stored_key)), server_key=b"", iterations=like.iterations
        )


_MODEL = ScramCredential(salt=_SALT_ALPHABET[:26], stored_key=bytes(32), server_key=b"", iterations=LEAST_ITERATIONS)
