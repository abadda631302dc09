"""The request handlers: one module per Kafka API, whose docstring is the data sheet of that API.

Owns the processing of requests. Must not know sockets, frames or how a request arrives (`pybroker.net`). Has no state:
a handler reads one metadata image, calls the controller, partitions or configuration, and builds a response.

    registry        an API is registered where it is defined; everything else derives from that
    context         what a handler may use, and where the request came from
    errors          the one place where exceptions become wire codes
    config_entries  settings as DescribeConfigs and CreateTopics show them
    topic_metadata  brokers and topics as Metadata and DescribeCluster show them
"""
