"""The request handlers: one module per Kafka API, whose docstring is the data sheet of that API.

Owns the processing of requests. Must not know sockets, frames or how a request arrives (`pybroker.net`). Has no state:
a handler reads one metadata image, calls the controller, partitions or configuration, and builds a response.

    registry        the registration of APIs, from which dispatch, ApiVersions and metrics derive
    context         the services of a handler, and the origin of its request
    errors          the mapping from exceptions to error codes
    config_entries  configuration entries of DescribeConfigs and CreateTopics
    topic_metadata  the brokers and the controller in Metadata and DescribeCluster
"""
