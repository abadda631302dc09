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
        "What makes a principal of what a connection has proved, on all listeners. Kafka's default takes the name as "
        "it is; module:Class is a Python class of your own (docs/guides/authorization.md).",
        parse=str,
        check=lambda value: value == DEFAULT_BUILDER or is_python_class(value),
        expected=f"{DEFAULT_BUILDER}, or a Python class as module:Class: no Java class can be loaded",
        dynamic=True,
    )
    sasl_jaas_config = password(
        "Login modules in JAAS form; the users of PLAIN are options user_<name>=<password> of its PlainLoginModule. "
        "listener.name.<name>.<mechanism>.sasl.jaas.config sets it for one listener and mechanism.",
        acts=True,
    )
    sasl_kerberos_kinit_cmd = string("/usr/bin/kinit", "Path of kinit.", acts=False, dynamic=True)
    sasl_kerberos_min_time_before_relogin = long(
        60_000, "Pause, in ms, between attempts to renew a ticket.", acts=False, dynamic=True
    )
    sasl_kerberos_principal_to_local_rules = listing(
        ("DEFAULT",),
        "Rules from the Kerberos principals of clients to users: DEFAULT takes the first part of a principal of the "
        "broker's realm, RULE: has Kafka's form, with patterns of RE2 (docs/guides/users.md).",
        dynamic=True,
    )
    sasl_kerberos_service_name = optional_string(
        "The first part of the brokers' Kerberos principal, by which clients ask for tickets. A listener with GSSAPI "
        "needs it, or serviceName in its login module.",
        dynamic=True,
    )
    sasl_kerberos_ticket_renew_jitter = double(
        0.05, "Random part added to the time of renewal.", at_least=None, acts=False, dynamic=True
    )
    sasl_kerberos_ticket_renew_window_factor = double(
        0.8, "Part of a ticket's life after which it is renewed.", at_least=None, acts=False, dynamic=True
    )
    sasl_login_refresh_buffer_seconds = short(
        300, "Seconds before the end of a node's own token of OAUTHBEARER by which it is renewed.", dynamic=True
    )
    sasl_login_refresh_min_period_seconds = short(60, "Least seconds between renewals of that token.", dynamic=True)
    sasl_login_refresh_window_factor = double(
        0.8, "Part of that token's life after which it is renewed: from 0.5 to 1.", at_least=None, dynamic=True
    )
    sasl_login_refresh_window_jitter = double(
        0.05, "Largest random part added to that time: from 0 to 0.25.", at_least=None, dynamic=True
    )
    sasl_mechanism_inter_broker_protocol = string(
        "GSSAPI",
        "How a broker shows who it is to other brokers: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI. "
        "User, token or key are those of listener.name.<name>.<mechanism>.sasl.jaas.config.",
        dynamic=True,
    )
    ssl_cipher_suites = listing((), "Cipher suites offered.", dynamic=True)
    ssl_client_auth = string(
        "none",
        "Whether a client of an SSL listener has to show a certificate.",
        one_of=("required", "requested", "none"),
        dynamic=True,
    )
    ssl_enabled_protocols = listing(("TLSv1.2", "TLSv1.3"), "TLS versions offered.", dynamic=True)
    ssl_endpoint_identification_algorithm = string(
        "https",
        "Whether another node's certificate has to be for the host that is connected to: https, or empty for no.",
        dynamic=True,
    )
    ssl_engine_factory_class = class_name(None, "The class that makes SSL engines; none is taken.")
    ssl_key_password = password("Password of the private key.", acts=True)
    ssl_keymanager_algorithm = string("SunX509", "Algorithm of the key manager.", acts=False, dynamic=True)
    ssl_keystore_certificate_chain = password("Certificate chain.", acts=True)
    ssl_keystore_key = password("Private key.", acts=True)
    ssl_keystore_location = optional_string("File of the key store.", dynamic=True)
    ssl_keystore_password = password("Password of the key store.", acts=True)
    ssl_keystore_type = string("JKS", "Format of the key store.", dynamic=True)
    ssl_protocol = string("TLSv1.3", "TLS version of the context.", acts=False, dynamic=True)
    ssl_provider = optional_string("Security provider.", acts=False, dynamic=True)
    ssl_secure_random_implementation = optional_string("Source of random numbers.", acts=False, dynamic=True)
    ssl_trustmanager_algorithm = string("PKIX", "Algorithm of the trust manager.", acts=False, dynamic=True)
    ssl_truststore_certificates = password("Trusted certificates.", acts=True)
    ssl_truststore_location = optional_string("File of the trust store.", dynamic=True)
    ssl_truststore_password = password("Password of the trust store.", acts=True)
    ssl_truststore_type = string("JKS", "Format of the trust store.", dynamic=True)


LISTENER_ONLY = frozenset(
    {"ssl.key.password"}
    | {f"ssl.keystore.{what}" for what in ("certificate.chain", "key", "location", "password", "type")}
    | {f"ssl.truststore.{what}" for what in ("certificates", "location", "password", "type")}
)
"""Keys that Kafka changes only with a listener prefix (`listener.name.NAME.`): each listener has its certificate."""
