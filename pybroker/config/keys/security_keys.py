"""Keys of encryption and authentication of listeners: ssl.*, sasl.* and the principal builder class.

The keys are parsed as in Kafka. Those of sasl.* are read for each listener (`config.sasl`), those of TLS by
`pybroker/config/security/tls.py`, where a listener's own values override them. Must not know listeners.
"""

from __future__ import annotations

from pybroker.config.key import (
    Key,
    Kind,
    class_name,
    double,
    is_python_class,
    listing,
    long,
    optional_string,
    password,
    short,
    string,
)
from pybroker.config.settings import Settings

DEFAULT_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


class SecurityKeys(Settings):
    """The settings of Kafka's SSL and SASL listeners; each can change per broker, not cluster-wide."""

    principal_builder_class = Key(
        Kind.CLASS,
        DEFAULT_BUILDER,
        "Class that builds the principal of an authenticated connection, on all listeners. Kafka's default uses the "
        "authenticated name unchanged; module:Class is a custom Python class (docs/guides/authorization.md).",
        parse=str,
        check=lambda value: value == DEFAULT_BUILDER or is_python_class(value),
        expected=f"{DEFAULT_BUILDER}, or a Python class as module:Class: no Java class can be loaded",
        dynamic=True,
    )
    sasl_jaas_config = password(
        "Login modules in JAAS format. An option user_<name>=<password> of PlainLoginModule defines a user of PLAIN. "
        "listener.name.<name>.<mechanism>.sasl.jaas.config sets it for one listener and mechanism.",
        acts=True,
    )
    sasl_kerberos_kinit_cmd = string("/usr/bin/kinit", "Path of the kinit command.", acts=False, dynamic=True)
    sasl_kerberos_min_time_before_relogin = long(
        60_000, "Pause in ms between two attempts to renew a ticket.", acts=False, dynamic=True
    )
    sasl_kerberos_principal_to_local_rules = listing(
        ("DEFAULT",),
        "Rules that map the Kerberos principals of clients to users. DEFAULT uses the first component of a principal "
        "in the broker's realm; RULE: has Kafka's syntax, with RE2 patterns (docs/guides/users.md).",
        dynamic=True,
    )
    sasl_kerberos_service_name = optional_string(
        "First component of the brokers' Kerberos principal, for which clients request tickets. A listener with GSSAPI "
        "needs it, or serviceName in its login module.",
        dynamic=True,
    )
    sasl_kerberos_ticket_renew_jitter = double(
        0.05, "Random fraction added to the renewal time of a ticket.", at_least=None, acts=False, dynamic=True
    )
    sasl_kerberos_ticket_renew_window_factor = double(
        0.8, "Fraction of a ticket's lifetime after which it is renewed.", at_least=None, acts=False, dynamic=True
    )
    sasl_login_refresh_buffer_seconds = short(
        300,
        "Minimum time in seconds between the renewal of a node's own OAUTHBEARER token and its expiry.",
        dynamic=True,
    )
    sasl_login_refresh_min_period_seconds = short(
        60, "Minimum time in seconds between two renewals of a node's own OAUTHBEARER token.", dynamic=True
    )
    sasl_login_refresh_window_factor = double(
        0.8,
        "Fraction of the lifetime of a node's own OAUTHBEARER token after which it is renewed, from 0.5 to 1.",
        at_least=None,
        dynamic=True,
    )
    sasl_login_refresh_window_jitter = double(
        0.05,
        "Maximum random fraction added to sasl.login.refresh.window.factor, from 0 to 0.25.",
        at_least=None,
        dynamic=True,
    )
    sasl_mechanism_inter_broker_protocol = string(
        "GSSAPI",
        "SASL mechanism with which a broker authenticates to other brokers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, "
        "OAUTHBEARER, GSSAPI. listener.name.<name>.<mechanism>.sasl.jaas.config sets its user, token or key.",
        dynamic=True,
    )
    ssl_cipher_suites = listing((), "Enabled TLS cipher suites.", dynamic=True)
    ssl_client_auth = string(
        "none",
        "Whether a client of an SSL listener must present a certificate (required), may present one (requested), or "
        "does not (none).",
        one_of=("required", "requested", "none"),
        dynamic=True,
    )
    ssl_enabled_protocols = listing(("TLSv1.2", "TLSv1.3"), "Enabled TLS versions.", dynamic=True)
    ssl_endpoint_identification_algorithm = string(
        "https",
        "Whether the certificate of another node must match the host name of the connection: https, or empty to "
        "disable this check.",
        dynamic=True,
    )
    ssl_engine_factory_class = class_name(None, "Class that creates SSL engines. Only none is accepted.")
    ssl_key_password = password("Password of the private key.", acts=True)
    ssl_keymanager_algorithm = string("SunX509", "Algorithm of the key manager.", acts=False, dynamic=True)
    ssl_keystore_certificate_chain = password(
        "Certificate chain in PEM format, in place of a key store file.", acts=True
    )
    ssl_keystore_key = password("Private key in PEM format, in place of a key store file.", acts=True)
    ssl_keystore_location = optional_string("File of the key store.", dynamic=True)
    ssl_keystore_password = password("Password of the key store.", acts=True)
    ssl_keystore_type = string("JKS", "Format of the key store: JKS, PKCS12 or PEM.", dynamic=True)
    ssl_protocol = string("TLSv1.3", "TLS version of the context.", acts=False, dynamic=True)
    ssl_provider = optional_string("Security provider.", acts=False, dynamic=True)
    ssl_secure_random_implementation = optional_string("Source of random numbers.", acts=False, dynamic=True)
    ssl_trustmanager_algorithm = string("PKIX", "Algorithm of the trust manager.", acts=False, dynamic=True)
    ssl_truststore_certificates = password(
        "Trusted certificates in PEM format, in place of a trust store file.", acts=True
    )
    ssl_truststore_location = optional_string("File of the trust store.", dynamic=True)
    ssl_truststore_password = password("Password of the trust store.", acts=True)
    ssl_truststore_type = string("JKS", "Format of the trust store: JKS, PKCS12 or PEM.", dynamic=True)


LISTENER_ONLY = frozenset(
    {"ssl.key.password"}
    | {f"ssl.keystore.{what}" for what in ("certificate.chain", "key", "location", "password", "type")}
    | {f"ssl.truststore.{what}" for what in ("certificates", "location", "password", "type")}
)
"""Keys that Kafka changes only with a listener prefix (`listener.name.NAME.`): each listener has its certificate."""
