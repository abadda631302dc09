"""Configuration: Kafka's keys with their types, defaults, ranges and documentation.

Owns every default of the broker (Rust receives complete values and has none), the `.properties` format, and the
error messages of invalid values. Must not know sockets, log files, or the users of a setting. Requests see only the
values: the limits with which the data plane was started, and the keys in DescribeConfigs.

    key         one key: type, default, range, documentation
    settings    an immutable set of values, parsed from text
    broker      BrokerConfig, combined from the `*_keys` modules
    topic       TopicConfig: topic overrides with the broker's values as defaults
    endpoint    listeners as values
    quorum      voters and bootstrap servers as values
    roles       rules between roles, listeners and the quorum
    properties  the file format
    reference   docs/reference/configs.md
"""
