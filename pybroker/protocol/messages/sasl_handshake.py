"""SaslHandshake (17): selects the SASL mechanism of a connection."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int16, string, versions

FIRST_VERSION_BEFORE_REQUESTS = 1
"""From this version on, SaslAuthenticate carries the tokens (KIP-152). In version 0, each token is a bare frame."""


class SaslHandshakeRequest(Message, api_key=17, kind="request", versions="0-1", flexible="none"):
    """Selects a mechanism (KIP-43)."""

    mechanism: Annotated[str, string, versions("0+"), about("The mechanism's name, such as PLAIN.")] = ""


class SaslHandshakeResponse(Message, api_key=17, kind="response", versions="0-1", flexible="none"):
    """Whether the listener enables the mechanism, and the mechanisms that it enables."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    mechanisms: Annotated[list[str], string, versions("0+"), about("The mechanisms of the listener.")] = []
