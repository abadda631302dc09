"""The settings of encryption and authentication: `security.protocol`, `ssl.*`, `sasl.*`.

Owns all keys of Kafka's clients with these prefixes, librdkafka's names for some, and the rules between them. Each is
honoured or rejected by name. Must not read a file: `pybroker.client.security` creates TLS and SASL
objects from these values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.client.errors import SettingError
from pybroker.client.settings.base import ClientSettings
from pybroker.client.settings.keys import fixed
from pybroker.config.key import (
    Key,
    Kind,
    boolean,
    double,
    integer,
    long,
    optional_integer,
    optional_listing,
    optional_string,
    password,
    short,
    string,
)
from pybroker.config.security.oauth import LOGIN_HANDLERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.client import native

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
_VERSIONS = ("TLSv1.2", "TLSv1.3")
_STORES = ("JKS", "PKCS12", "PEM")
_NO_JVM = "pybroker does not run on a JVM"
_TICKETS = "The system's Kerberos library renews tickets."
_ASSERTIONS = "tokens are requested with a client id and secret, not with an assertion"
_BROKERS = "Only brokers use this key."
_LIBRDKAFKAS = "librdkafka's key"
_LIBRDKAFKA = "librdkafka's name for "


def _choice(default: str, doc: str, one_of: tuple[str, ...]) -> Key[str]:
    """Declare a key with some allowed words in capital letters, accepted in any case."""
    expected = "one of " + ", ".join(one_of)
    return Key(Kind.STRING, default, doc, parse=str.upper, check=lambda word: word in one_of, expected=expected)


def _kerberos(default: str) -> Key[str]:
    key = string(default, _TICKETS)
    key.acts = False
    return key


def _assertion(default: str | None) -> Key[str | None]:
    only = () if default is None else (default,)
    return fixed(default, "A setting of client assertions, which are not supported.", only=only, because=_ASSERTIONS)


def _secret(doc: str, *, ours: str = "") -> Key[str | None]:
    key = password(doc, acts=True)
    key.ours = ours
    return key


def _alias(doc: str) -> Key[str | None]:
    key = optional_string(doc)
    key.ours = _LIBRDKAFKAS
    return key


class SecuritySettings(ClientSettings):
    """Settings of encryption, of the trusted certificates, and of the client's credentials."""

    security_protocol = _choice(
        "PLAINTEXT", "The security of connections: TLS (`SSL`), SASL, both, or none.", PROTOCOLS
    )

    ssl_protocol = fixed(
        "TLSv1.3",
        "The newest TLS version. `ssl.enabled.protocols` lists all versions.",
        only=_VERSIONS,
        because=_NO_JVM,
    )
    ssl_provider = fixed(None, "A Java security provider.", because=_NO_JVM)
    ssl_cipher_suites = optional_listing("Cipher suites by their IANA names. Unset: all secure suites.")
    ssl_enabled_protocols = optional_listing("The enabled TLS versions: TLSv1.2, TLSv1.3. Unset: both.")
    ssl_keystore_type = _choice("JKS", "The format of the key store: PKCS12 or PEM.", _STORES)
    ssl_keystore_location = optional_string(
        "A file with the client's key and certificates, in the format `ssl.keystore.type`."
    )
    ssl_keystore_password = _secret("The password of a PKCS12 key store.")
    ssl_key_password = _secret("The password of an encrypted PEM key.")
    ssl_keystore_key = _secret("The client's key, as PEM text.")
    ssl_keystore_certificate_chain = _secret("The client's certificates, as PEM text.")
    ssl_truststore_type = _choice("JKS", "The format of the trust store: PKCS12 or PEM.", _STORES)
    ssl_truststore_location = optional_string(
        "A file with the trusted certificates. Unset: those of the operating system."
    )
    ssl_truststore_password = _secret("The password of a PKCS12 trust store.")
    ssl_truststore_certificates = _secret("The trusted certificates, as PEM text.")
    ssl_endpoint_identification_algorithm = string(
        "https",
        "Whether a broker's certificate must match the host name of the connection: `https` for yes, empty for no.",
        one_of=("https", "", "none"),
        any_case=True,
    )
    ssl_engine_factory_class = fixed(None, "A Java class that creates TLS engines.", because=_NO_JVM)
    ssl_keymanager_algorithm = fixed(
        "SunX509", "Java's algorithm of key managers.", only=("SunX509", "PKIX"), because=_NO_JVM
    )
    ssl_trustmanager_algorithm = fixed("PKIX", "Java's algorithm of trust managers.", only=("PKIX",), because=_NO_JVM)
    ssl_secure_random_implementation = fixed(None, "Java's source of random numbers.", because=_NO_JVM)
    ssl_ca_location = _alias(f"{_LIBRDKAFKA}`ssl.truststore.location` in PEM.")
    ssl_ca_pem = _secret(f"{_LIBRDKAFKA}`ssl.truststore.certificates`.", ours=_LIBRDKAFKAS)
    ssl_certificate_location = _alias("librdkafka's key: a PEM file with the client's certificates.")
    ssl_certificate_pem = _secret(f"{_LIBRDKAFKA}`ssl.keystore.certificate.chain`.", ours=_LIBRDKAFKAS)
    ssl_key_location = _alias("librdkafka's key: a PEM file with the client's key.")
    ssl_key_pem = _secret(f"{_LIBRDKAFKA}`ssl.keystore.key`.", ours=_LIBRDKAFKAS)

    sasl_mechanism = string("GSSAPI", f"The SASL mechanism of the client: {', '.join(MECHANISMS)}.")
    sasl_mechanisms = _alias(f"{_LIBRDKAFKA}`sasl.mechanism`.")
    sasl_jaas_config = _secret("A login module with its options, in the syntax of Kafka's clients.")
    sasl_username = _alias("librdkafka's key: the user of PLAIN and SCRAM.")
    sasl_password = _secret("librdkafka's key: the user's password.", ours=_LIBRDKAFKAS)
    sasl_client_callback_handler_class = fixed(None, "A Java class that provides credentials.", because=_NO_JVM)
    sasl_login_callback_handler_class = fixed(
        None,
        "A Java class that provides credentials. Kafka's two for OAUTHBEARER are accepted: both are built in.",
        only=LOGIN_HANDLERS,
        because=_NO_JVM,
    )
    sasl_login_class = fixed(None, "A Java class that authenticates the client.", because=_NO_JVM)
    sasl_kerberos_service_name = optional_string(
        "The first part of the brokers' Kerberos principal: `kafka` of `kafka/host@REALM`. GSSAPI requires "
        "this key, or serviceName in the login module."
    )
    sasl_kerberos_kinit_cmd = _kerberos("/usr/bin/kinit")
    sasl_kerberos_ticket_renew_window_factor = double(0.8, _TICKETS, acts=False)
    sasl_kerberos_ticket_renew_jitter = double(0.05, _TICKETS, acts=False)
    sasl_kerberos_min_time_before_relogin = long(60_000, _TICKETS, acts=False)
    sasl_login_refresh_window_factor = double(
        0.8, "The fraction of a token's lifetime after which the client renews it.", at_least=0.5, at_most=1.0
    )
    sasl_login_refresh_window_jitter = double(
        0.05, "The maximum random fraction added to `sasl.login.refresh.window.factor`.", at_least=0.0, at_most=0.25
    )
    sasl_login_refresh_min_period_seconds = short(
        60, "The minimum time in seconds before the client renews a token.", at_least=0, at_most=900
    )
    sasl_login_refresh_buffer_seconds = short(
        300, "The minimum seconds between a token's renewal and its expiry.", at_least=0, at_most=3600
    )
    sasl_login_connect_timeout_ms = optional_integer(
        "The timeout of token requests if `sasl.login.read.timeout.ms` is not set."
    )
    sasl_login_read_timeout_ms = optional_integer(
        "The timeout of token requests. Unset: `sasl.login.connect.timeout.ms`, or 30 s."
    )
    sasl_login_retry_backoff_ms = long(100, "The wait before retrying a token request; it doubles with each failure.")
    sasl_login_retry_backoff_max_ms = long(10_000, "The maximum wait before retrying a token request.")
    sasl_oauthbearer_token_provider = string(
        "",
        "A function without arguments that returns a `BearerToken`. It is called again before the token expires.",
        ours="set it if a program has its own source of tokens",
    )
    sasl_oauthbearer_token_endpoint_url = optional_string(
        "The URL of the token endpoint (`https:`, `http:`), or of a file with the token (`file:`)."
    )
    sasl_oauthbearer_client_credentials_client_id = optional_string("The client id for the token endpoint.")
    sasl_oauthbearer_client_credentials_client_secret = _secret("The client secret for the token endpoint.")
    sasl_oauthbearer_scope = optional_string("The scope of token requests.")
    sasl_oauthbearer_header_urlencode = boolean(False, "Whether client id and secret are URL-encoded (RFC 6749).")
    sasl_oauthbearer_scope_claim_name = string("scope", _BROKERS, acts=False)
    sasl_oauthbearer_sub_claim_name = string("sub", _BROKERS, acts=False)
    sasl_oauthbearer_clock_skew_seconds = integer(30, _BROKERS, acts=False)
    sasl_oauthbearer_expected_audience = optional_listing(_BROKERS, acts=False)
    sasl_oauthbearer_expected_issuer = optional_string(_BROKERS, acts=False)
    sasl_oauthbearer_jwks_endpoint_url = optional_string(_BROKERS, acts=False)
    sasl_oauthbearer_jwks_endpoint_refresh_ms = long(3_600_000, _BROKERS, acts=False)
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = long(100, _BROKERS, acts=False)
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = long(10_000, _BROKERS, acts=False)
    sasl_oauthbearer_jwt_retriever_class = fixed(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "A Java class that requests tokens.",
        only=(
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
            "org.apache.kafka.common.security.oauthbearer.ClientCredentialsJwtRetriever",
        ),
        because=_NO_JVM,
    )
    sasl_oauthbearer_jwt_validator_class = fixed(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        "A Java class that validates received tokens.",
        only=(
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
            "org.apache.kafka.common.security.oauthbearer.ClientJwtValidator",
        ),
        because=_NO_JVM,
    )
    sasl_oauthbearer_assertion_algorithm = _assertion("RS256")
    sasl_oauthbearer_assertion_claim_aud = _assertion(None)
    sasl_oauthbearer_assertion_claim_exp_seconds = _assertion("300")
    sasl_oauthbearer_assertion_claim_iss = _assertion(None)
    sasl_oauthbearer_assertion_claim_jti_include = _assertion("false")
    sasl_oauthbearer_assertion_claim_nbf_seconds = _assertion("60")
    sasl_oauthbearer_assertion_claim_sub = _assertion(None)
    sasl_oauthbearer_assertion_file = _assertion(None)
    sasl_oauthbearer_assertion_private_key_file = _assertion(None)
    sasl_oauthbearer_assertion_private_key_passphrase = _assertion(None)
    sasl_oauthbearer_assertion_template_file = _assertion(None)

    tls: native.ClientTls | None = None
    """The TLS object of connections; None: connections are not encrypted, or the client was not created yet."""
    credentials: native.SaslCredentials | None = None
    """The SASL credentials; None: connections do not authenticate, or the client was not created yet."""

    token_provider: Callable[[], Any] | None
    """`sasl.oauthbearer.token.provider`."""

    @property
    def is_encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.security_protocol.endswith("SSL")

    @property
    def signs_in(self) -> bool:
        """Whether connections authenticate with SASL."""
        return self.security_protocol.startswith("SASL_")

    @property
    def mechanism(self) -> str:
        """Return the SASL mechanism."""
        return self.sasl_mechanisms or self.sasl_mechanism

    @property
    def by_default(self) -> str:
        """Return the suffix of a message about the mechanism: empty if the mechanism was set."""
        return "" if {"sasl.mechanism", "sasl.mechanisms"} & self.named else " (the default)"

    def _check_security(self) -> None:
        if self.ssl_enabled_protocols is not None:
            for name in self.ssl_enabled_protocols:
                if name not in _VERSIONS:
                    raise SettingError(f"ssl.enabled.protocols={name}: must be one of {', '.join(_VERSIONS)}")
        if self.signs_in and self.mechanism not in MECHANISMS:
            raise SettingError(f"sasl.mechanism={self.mechanism}: must be one of {', '.join(MECHANISMS)}")
        if self.signs_in and self.sasl_jaas_config and (self.sasl_username or self.sasl_password):
            raise SettingError("sasl.jaas.config and sasl.username, sasl.password are set: set only one of them")


SECRETS = frozenset(name for name, key in SecuritySettings.keys.items() if key.kind is Kind.PASSWORD)
"""The keys whose values are hidden."""
