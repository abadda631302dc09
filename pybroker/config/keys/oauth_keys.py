"""Keys of OAUTHBEARER tokens: their issuers, their required claims, and the source of a node's own tokens.

The keys are parsed as in Kafka, and read for each listener (`config.oauth`, `config.outbound`). Must not know
listeners.
"""

from __future__ import annotations

from pybroker.config.key import (
    boolean,
    integer,
    listing,
    long,
    optional_integer,
    optional_string,
    password,
    string,
)
from pybroker.config.settings import Settings


class OAuthKeys(Settings):
    """The validation of tokens, and the source of a node's own token (KIP-768)."""

    sasl_oauthbearer_jwks_endpoint_url = optional_string(
        "Where the keys are that tokens of OAUTHBEARER are signed with (JWKS): an https: or file: address. It needs "
        "pybroker[oauth]. listener.name.<name>.sasl.oauthbearer.* sets these keys for one listener. Without it, "
        "listener.name.<name>.oauthbearer.sasl.server.callback.handler.class may name Kafka's "
        "OAuthBearerUnsecuredValidatorCallbackHandler, which takes tokens that nobody has signed."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = long(
        3_600_000, "How old, in ms, those keys may be before they are asked for again."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = long(
        100, "Pause, in ms, after the first attempt to get the keys that failed; it doubles with each further one."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = long(10_000, "Longest such pause, in ms.")
    sasl_oauthbearer_expected_audience = listing((), "Audiences (aud) of which a token has to name one; any if empty.")
    sasl_oauthbearer_expected_issuer = optional_string("The issuer (iss) that a token has to name.")
    sasl_oauthbearer_scope_claim_name = string("scope", "The claim that has a token's scopes.")
    sasl_oauthbearer_sub_claim_name = string("sub", "The claim that has the user.")
    sasl_oauthbearer_clock_skew_seconds = integer(
        30, "By how many seconds the clocks of broker and issuer may differ.", at_least=0
    )
    sasl_oauthbearer_token_endpoint_url = optional_string(
        "Where a node gets the token that shows other nodes who it is: an https: or http: address that is asked with "
        "the client's id and secret, or a file: that has it."
    )
    sasl_oauthbearer_client_credentials_client_id = optional_string(
        "The node's id there; clientId of the login module says the same."
    )
    sasl_oauthbearer_client_credentials_client_secret = password(
        "The node's secret there; clientSecret of the login module says the same.", acts=True
    )
    sasl_oauthbearer_scope = optional_string("The scope that is asked for there.")
    sasl_oauthbearer_header_urlencode = boolean(False, "Whether id and secret are encoded there as RFC 6749 has it.")
    sasl_login_connect_timeout_ms = optional_integer(
        "The longest wait, in ms, for the server of tokens to take a connection."
    )
    sasl_login_read_timeout_ms = optional_integer("The longest wait, in ms, for its answer.")
    sasl_login_retry_backoff_ms = long(
        100, "Pause, in ms, before a token is asked for again; it doubles with each further attempt."
    )
    sasl_login_retry_backoff_max_ms = long(10_000, "Longest such pause, in ms.")
