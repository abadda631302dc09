"""OAUTHBEARER: a client authenticates as the subject of its bearer token (RFC 7628, KIP-255).

Owns the messages. Must not validate tokens: `web_tokens` does. A rejected client gets the error in a challenge, as
RFC 7628 defines, and the exchange fails with its next message.

Source: Kafka's OAuthBearerSaslServer and OAuthBearerClientInitialResponse.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pybroker.security.sasl.steps import Challenge, Proved, Refused, Work
from pybroker.security.sasl.web_tokens import TokenError

if TYPE_CHECKING:
    from pybroker.security.sasl.steps import Outcome, Step
    from pybroker.security.sasl.web_tokens import Validator

_NAME = r"(?:[\x02-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_FIRST = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01")
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)")
_ACKNOWLEDGEMENT = b"\x01"


class BearerExchange:
    """A message with the token, and a second one after a rejection."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator
        # The rejection, with the challenge sent to the client; None without one.
        self._refused: Refused | None = None

    def step(self, token: bytes) -> Step:
        """Process a message of the client."""
        if self._refused is not None:
            return self._refused
        found = _FIRST.fullmatch(token.decode("latin-1"))
        if found is None:
            return Refused("the message is not an OAUTHBEARER message")
        pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair)
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if auth is None or auth["scheme"].lower() != "bearer":
            return Refused("the message has no bearer token")
        authzid = (found["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
        return Work(lambda: self._decide(auth["token"], authzid))

    def _decide(self, token: str, authzid: str) -> Outcome:
        try:
            bearer = self._validator.check(token)
        except TokenError as error:
            reported = {"status": error.status, **({} if error.scope is None else {"scope": error.scope})}
            words = json.dumps(reported, separators=(",", ":"))
            self._refused = Refused(str(error), words)
            return Challenge(words.encode())
        if authzid not in ("", bearer.user):
            return Refused(
                f"{bearer.user!r} requests the authorization id {authzid!r}",
                f"Authentication failed: Client requested an authorization id ({authzid}) that is different from the "
                f"token's principal name ({bearer.user})",
            )
        return Proved(bearer.user, expires_ms=bearer.expires_ms)
