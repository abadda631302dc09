"""What can be set: Kafka's keys with their types, defaults, ranges and meaning.

Owns every default of the broker (Rust receives complete values and has none), the `.properties` format, and the
messages for wrong values. Must not know sockets, files of the log, or who reads a setting. A request meets it only
through the values it made: the limits the data plane was started with, and the keys DescribeConfigs lists.

    key         one key: type, default, range, words for it
    settings    a frozen set of values, made from text
    broker      BrokerConfig, put together from the `*_keys` modules
    topic       TopicConfig: topic overrides over the broker's values
    endpoint    listeners as values
    quorum      voters and bootstrap servers as values
    roles       what roles, listeners and the quorum ask of each other
    properties  the file format
    reference   docs/reference/configs.md
"""
