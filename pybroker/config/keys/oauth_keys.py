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
        "https: or file: URL of the keys (JWKS) that verify OAUTHBEARER tokens; needs pybroker[oauth]. "
        "listener.name.<name>.sasl.oauthbearer.* sets it and related keys for one listener. Without this URL, "
        "listener.name.<name>.oauthbearer.sasl.server.callback.handler.class may be Kafka's "
        "OAuthBearerUnsecuredValidatorCallbackHandler, which accepts unsigned tokens."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = long(
        3_600_000, "Maximum age in ms of the JWKS keys before they are fetched again."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = long(
        100,
        "Initial backoff in ms after a failed attempt to fetch the JWKS keys. It doubles with each further attempt.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = long(
        10_000, "Maximum backoff in ms between two attempts to fetch the JWKS keys."
    )
    sasl_oauthbearer_expected_audience = listing(
        (), "Accepted audiences: the aud claim of a token must contain one of them. If empty, any audience is accepted."
    )
    sasl_oauthbearer_expected_issuer = optional_string("Issuer that a token must contain in its iss claim.")
    sasl_oauthbearer_scope_claim_name = string("scope", "Name of the claim with the scopes of a token.")
    sasl_oauthbearer_sub_claim_name = string("sub", "Name of the claim with the user of a token.")
    sasl_oauthbearer_clock_skew_seconds = integer(
        30, "Maximum difference in seconds between the clocks of broker and issuer.", at_least=0
    )
    sasl_oauthbearer_token_endpoint_url = optional_string(
        "Source of the token with which a node authenticates to other nodes. An https: or http: URL is queried with a "
        "client id and secret; a file: URL contains the token."
    )
    sasl_oauthbearer_client_credentials_client_id = optional_string(
        "Client id of the node at the token endpoint; same as clientId in the login module."
    )
    sasl_oauthbearer_client_credentials_client_secret = password(
        "Client secret of the node at the token endpoint; same as clientSecret in the login module.", acts=True
    )
    sasl_oauthbearer_scope = optional_string("Scope that is requested at the token endpoint.")
    sasl_oauthbearer_header_urlencode = boolean(
        False, "Whether client id and secret are URL-encoded for the token endpoint, as in RFC 6749."
    )
    sasl_login_connect_timeout_ms = optional_integer("Maximum wait in ms for a connection to the token endpoint.")
    sasl_login_read_timeout_ms = optional_integer("Maximum wait in ms for a response from the token endpoint.")
    sasl_login_retry_backoff_ms = long(
        100, "Initial backoff in ms before a token is requested again. It doubles with each further attempt."
    )
    sasl_login_retry_backoff_max_ms = long(10_000, "Maximum backoff in ms before a token is requested again.")
