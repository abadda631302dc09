"""Every metric of a node: its name, its meaning, and Kafka's MBean.

Owns names, kinds, units, labels and help; `docs/reference/metrics.md` is generated from them. Must not know where a
value comes from: `pybroker.node.measuring` reads both planes. Names are Kafka's in lower case, as Prometheus' JMX
exporter writes them: `kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec` is
`kafka_server_brokertopicmetrics_messagesin`. A rate of Kafka is a counter here, from which the reader computes the
rate. Times are in seconds.
"""

from __future__ import annotations

from pybroker.metrics.metric import Kind, Metric

_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM


def _topics(name: str, mbean: str, words: str, unit: str = "") -> tuple[Metric, Metric]:
    """Return a metric of all topics, and the same for each topic."""
    kafka = f"kafka.server:type=BrokerTopicMetrics,name={mbean}"
    end = f"_{unit}" if unit else ""
    return (
        Metric(f"kafka_server_brokertopicmetrics_{name}{end}", _C, words, (), unit, kafka),
        Metric(
            f"kafka_server_brokertopicmetrics_topic_{name}{end}",
            _C,
            f"Per topic: {words[0].lower()}{words[1:]}",
            ("topic",),
            unit,
            f"{kafka},topic=([-.\\w]+)",
        ),
    )


def _time(name: str, mbean: str, words: str) -> Metric:
    return Metric(
        f"kafka_network_requestmetrics_{name}_seconds",
        _H,
        words,
        ("request",),
        "seconds",
        f"kafka.network:type=RequestMetrics,name={mbean},request=([-.\\w]+)",
    )


def _replicas(name: str, words: str, kind: Kind = _G, mbean: str = "") -> Metric:
    return Metric(
        f"kafka_server_replicamanager_{name.lower()}",
        kind,
        words,
        kafka=f"kafka.server:type=ReplicaManager,name={mbean or name}",
    )


def _controller(name: str, words: str) -> Metric:
    return Metric(
        f"kafka_controller_kafkacontroller_{name.lower()}",
        _G,
        words,
        kafka=f"kafka.controller:type=KafkaController,name={name}",
    )


def _raft(name: str, words: str) -> Metric:
    return Metric(
        f"kafka_server_raft_metrics_{name.replace('-', '_')}",
        _G,
        words,
        kafka=f"kafka.server:type=raft-metrics,name={name}",
    )


def _clients(name: str, kind: str, attribute: str, words: str, unit: str = "", *, is_gauge: bool = False) -> Metric:
    """Return a metric of the entities of a quota."""
    return Metric(
        f"kafka_server_{kind.lower()}_{name}",
        _G if is_gauge else _C,
        words,
        ("user", "client_id"),
        unit,
        f"kafka.server:type={kind},user=(.*),client-id=(.*),name={attribute}",
    )


def _throttled(kind: str, words: str) -> Metric:
    return _clients("throttle_time_seconds", kind, "throttle-time", words, "seconds")


def _log(name: str, words: str, unit: str = "") -> Metric:
    end = f"_{unit}" if unit else ""
    return Metric(
        f"kafka_log_log_{name.lower()}{end}",
        _G,
        words,
        ("topic", "partition"),
        unit,
        f"kafka.log:type=Log,name={name},topic=([-.\\w]+),partition=([0-9]+)",
    )


METRICS: tuple[Metric, ...] = (
    # ------------------------------------------------------------------------------------------------ topics
    *_topics("bytesin", "BytesInPerSec", "Bytes of batches appended by producers.", "bytes"),
    *_topics("bytesout", "BytesOutPerSec", "Bytes of records sent to consumers.", "bytes"),
    *_topics("bytesrejected", "BytesRejectedPerSec", "Bytes of batches rejected as too large.", "bytes"),
    *_topics("messagesin", "MessagesInPerSec", "Records appended by producers."),
    *_topics(
        "totalproducerequests",
        "TotalProduceRequestsPerSec",
        "Partitions in Produce requests, counted as in Kafka.",
    ),
    *_topics(
        "failedproducerequests",
        "FailedProduceRequestsPerSec",
        "Partitions in Produce requests that failed with an unexpected error. Not counted: a moved leader, an unknown "
        "topic, a batch that is too large or damaged, a failed disk.",
    ),
    *_topics(
        "totalfetchrequests",
        "TotalFetchRequestsPerSec",
        "Partitions read for Fetch requests of consumers and followers. A delayed Fetch is counted again when it is "
        "retried.",
    ),
    *_topics(
        "failedfetchrequests",
        "FailedFetchRequestsPerSec",
        "Partitions read for Fetch requests that failed with an unexpected error. Not counted: a moved leader, an "
        "offset out of range, an unknown topic, a failed disk.",
    ),
    Metric(
        "kafka_server_brokertopicmetrics_replicationbytesin_bytes",
        _C,
        "Bytes of records that this broker fetched from leaders and appended.",
        (),
        "bytes",
        "kafka.server:type=BrokerTopicMetrics,name=ReplicationBytesInPerSec",
    ),
    Metric(
        "kafka_server_brokertopicmetrics_replicationbytesout_bytes",
        _C,
        "Bytes of records sent to followers.",
        (),
        "bytes",
        "kafka.server:type=BrokerTopicMetrics,name=ReplicationBytesOutPerSec",
    ),
    Metric(
        "pybroker_metrics_topics_omitted",
        _G,
        "Topics that exceed metrics.topics.max. These topics and their partitions have no series of their own.",
    ),
    # ---------------------------------------------------------------------------------------------- requests
    Metric(
        "kafka_network_requestmetrics_requests",
        _C,
        "Received requests.",
        ("request",),
        kafka="kafka.network:type=RequestMetrics,name=RequestsPerSec,request=([-.\\w]+)",
    ),
    Metric(
        "kafka_network_requestmetrics_requestbytes_bytes",
        _C,
        "Bytes of requests, size prefixes included.",
        ("request",),
        "bytes",
        "kafka.network:type=RequestMetrics,name=RequestBytes,request=([-.\\w]+)",
    ),
    Metric(
        "kafka_network_requestmetrics_responsebytes_bytes",
        _C,
        "Bytes of responses, size prefixes included.",
        ("request",),
        "bytes",
    ),
    Metric(
        "kafka_network_requestmetrics_inwork",
        _G,
        "Requests in progress, delayed requests included.",
        ("request",),
    ),
    Metric(
        "kafka_network_requestmetrics_errors",
        _C,
        "Error codes in Produce and Fetch responses, counted per partition, or once if the whole response is an error.",
        ("request", "error"),
        kafka="kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=([-.\\w]+),error=([-.\\w]+)",
    ),
    _time(
        "requestqueuetime", "RequestQueueTimeMs", "Time from the last byte of a request to the start of its processing."
    ),
    _time("localtime", "LocalTimeMs", "Processing time of requests on this node."),
    _time(
        "remotetime",
        "RemoteTimeMs",
        "Time that requests waited for data, other replicas, a sync, or other nodes.",
    ),
    _time("throttletime", "ThrottleTimeMs", "Time that connections are muted after a response because of a quota."),
    _time(
        "responsesendtime",
        "ResponseSendTimeMs",
        "Time from the creation of a response to its last byte in the socket. Corresponds to the sum of Kafka's "
        "ResponseQueueTimeMs and ResponseSendTimeMs.",
    ),
    _time("totaltime", "TotalTimeMs", "Time from the last byte of a request to the last byte of its response."),
    Metric(
        "pybroker_control_requests",
        _C,
        "Requests handled by the control plane, by API and version.",
        ("request", "version"),
    ),
    Metric(
        "pybroker_control_request_failures",
        _C,
        "Control-plane requests whose whole response was an error, by API and version.",
        ("request", "version"),
    ),
    # --------------------------------------------------------------------------------- waiting and connections
    Metric(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        _G,
        "Delayed requests: a Produce waits for other replicas or a sync, a Fetch for data.",
        ("delayedOperation",),
        kafka="kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,delayedOperation=([-.\\w]+)",
    ),
    Metric(
        "kafka_server_delayedoperation_expires",
        _C,
        "Delayed requests that reached their maximum wait time.",
        ("delayedOperation",),
        kafka="kafka.server:type=DelayedFetchMetrics,name=ExpiresPerSec",
    ),
    Metric(
        "kafka_server_socket_server_metrics_connection_count",
        _G,
        "Open connections of a listener.",
        ("listener",),
        kafka="kafka.server:type=socket-server-metrics,listener=([-.\\w]+),name=connection-count",
    ),
    Metric(
        "kafka_server_socket_server_metrics_connection_creation",
        _C,
        "Connections accepted by a listener.",
        ("listener",),
        kafka="kafka.server:type=socket-server-metrics,listener=([-.\\w]+),name=connection-creation-total",
    ),
    Metric(
        "kafka_server_socket_server_metrics_connection_close",
        _C,
        "Closed connections of a listener.",
        ("listener",),
        kafka="kafka.server:type=socket-server-metrics,listener=([-.\\w]+),name=connection-close-total",
    ),
    Metric(
        "kafka_server_socket_server_metrics_connection_accept_throttle_time_seconds",
        _C,
        "Time that connections to a listener waited to be accepted because they exceeded max.connection.creation.rate.",
        ("listener",),
        "seconds",
        "kafka.server:type=socket-server-metrics,listener=([-.\\w]+),name=connection-accept-throttle-time",
    ),
    Metric(
        "kafka_server_socket_server_metrics_ip_connection_accept_throttle_time_seconds",
        _C,
        "Total time that connections to a listener were delayed before they were closed because their address exceeded "
        "its connection_creation_rate.",
        ("listener",),
        "seconds",
        "kafka.server:type=socket-server-metrics,listener=([-.\\w]+),name=ip-connection-accept-throttle-time",
    ),
    Metric(
        "kafka_server_socket_server_metrics_ip_connection_accept",
        _C,
        "Connections accepted from an address with a connection_creation_rate.",
        ("ip",),
        kafka="kafka.server:type=socket-server-metrics,ip=(.+),name=connection-accept-rate",
    ),
    # ------------------------------------------------------------------------------- clients that have a quota
    _clients("bytes", "Produce", "byte-rate", "Bytes of Produce requests of clients with a quota.", "bytes"),
    _throttled("Produce", "Throttle time due to producer_byte_rate."),
    _clients("bytes", "Fetch", "byte-rate", "Bytes of Fetch responses to clients with a quota.", "bytes"),
    _throttled("Fetch", "Throttle time due to consumer_byte_rate."),
    _clients(
        "request_time_seconds",
        "Request",
        "request-time",
        "Thread time used for requests of clients with a request_percentage quota.",
        "seconds",
    ),
    _throttled("Request", "Throttle time due to request_percentage."),
    _clients(
        "tokens",
        "ControllerMutation",
        "tokens",
        "Partitions that clients with a controller_mutation_rate quota may create or delete now, on the active "
        "controller. Negative after a burst.",
        is_gauge=True,
    ),
    _clients(
        "partitions",
        "ControllerMutation",
        "rate",
        "Partitions created and deleted by clients with a controller_mutation_rate quota.",
    ),
    _throttled("ControllerMutation", "Throttle time due to controller_mutation_rate."),
    Metric(
        "pybroker_metrics_clients_omitted",
        _G,
        "Users and client ids with a quota, and addresses (`ip`), that exceed metrics.clients.max. Those with the "
        "lowest usage are omitted: they have no series of their own.",
        ("quota",),
    ),
    Metric(
        "kafka_network_processor_cpu_seconds",
        _C,
        "CPU time of a network thread. A rate of 1 means that the thread is never idle. Kafka's IdlePercent is the "
        "share of time without work.",
        ("networkProcessor",),
        "seconds",
        "kafka.network:type=Processor,name=IdlePercent,networkProcessor=([0-9]+)",
    ),
    Metric(
        "kafka_server_ssl_certificate_expiry_seconds",
        _G,
        "Seconds until the certificate of a listener expires; negative after the expiry.",
        ("listener",),
        "seconds",
    ),
    # ------------------------------------------------------------------------------------------- replicas, logs
    _replicas("LeaderCount", "Partitions that have this broker as leader."),
    _replicas("PartitionCount", "Partitions with a replica on this broker."),
    _replicas("OfflineReplicaCount", "Replicas of this broker in failed log directories."),
    _replicas("UnderReplicatedPartitions", "Partitions that have this broker as leader, with an out-of-sync replica."),
    _replicas(
        "UnderMinIsrPartitionCount",
        "Partitions that have this broker as leader, with fewer in-sync replicas than min.insync.replicas.",
    ),
    _replicas(
        "AtMinIsrPartitionCount",
        "Partitions that have this broker as leader, with exactly min.insync.replicas in-sync replicas.",
    ),
    _replicas(
        "IsrShrinks",
        "Times that a replica left the ISR of a partition of which this broker is the leader.",
        _C,
        "IsrShrinksPerSec",
    ),
    _replicas(
        "IsrExpands",
        "Times that a replica joined the ISR of a partition of which this broker is the leader.",
        _C,
        "IsrExpandsPerSec",
    ),
    _replicas("FailedIsrUpdates", "ISR changes that the controller rejected.", _C, "FailedIsrUpdatesPerSec"),
    _log("Size", "Bytes of a partition's log.", "bytes"),
    _log("NumLogSegments", "Segments of a partition's log."),
    _log("LogStartOffset", "The first readable offset of a partition."),
    _log("LogEndOffset", "The offset of the next record of a partition."),
    Metric(
        "kafka_log_logmanager_size_bytes",
        _G,
        "Bytes of all logs of this broker.",
        (),
        "bytes",
    ),
    Metric(
        "kafka_log_logmanager_offlinelogdirectorycount",
        _G,
        "Failed log directories.",
        kafka="kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
    ),
    Metric("pybroker_log_group_flush_syncs", _C, "Syncs of logs with flush=group."),
    Metric("pybroker_log_group_flush_appends", _C, "Appends made durable by syncs with flush=group."),
    Metric(
        "pybroker_log_recovered_bytes",
        _C,
        "Bytes of segments read and checked by recovery after an unclean shutdown.",
        (),
        "bytes",
    ),
    Metric(
        "kafka_log_logmanager_remaininglogstorecover",
        _G,
        "Logs of a log directory that are not yet recovered after an unclean shutdown.",
        ("directory",),
        kafka="kafka.log:type=LogManager,name=remainingLogsToRecover,dir=(.+)",
    ),
    Metric(
        "pybroker_log_remaining_recovery_bytes",
        _G,
        "Bytes of segments in a log directory that recovery has not yet read and checked.",
        ("directory",),
        "bytes",
    ),
    Metric(
        "kafka_log_logflushstats_flushes",
        _C,
        "Flushes of logs. A flush syncs the segments, the indexes and the directory of a log.",
        kafka="kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
    ),
    Metric("kafka_log_logflushstats_seconds", _C, "Total duration of log flushes.", (), "seconds"),
    Metric(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        _G,
        "Compacted partitions that the cleaner skips because of damage.",
        kafka="kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count,logDirectory=(.+)",
    ),
    Metric(
        "kafka_log_logcleanermanager_max_dirty_percent",
        _G,
        "Highest dirty ratio of a compacted log at the last check, in percent: cleanable bytes divided by the sum of "
        "cleanable and clean bytes.",
        kafka="kafka.log:type=LogCleanerManager,name=max-dirty-percent",
    ),
    Metric(
        "kafka_log_logcleanermanager_time_since_last_run_seconds",
        _G,
        "Time since the cleaner last checked which logs are due for cleaning.",
        (),
        "seconds",
        "kafka.log:type=LogCleanerManager,name=time-since-last-run-ms",
    ),
    Metric("pybroker_log_cleaner_due_logs", _G, "Logs due for cleaning at the last check."),
    Metric(
        "pybroker_log_cleaner_due_bytes", _G, "Cleanable bytes of logs due for cleaning at the last check.", (), "bytes"
    ),
    Metric("pybroker_log_cleaner_passes", _C, "Completed passes of the cleaner over a log."),
    Metric("pybroker_log_cleaner_seconds", _C, "Total duration of cleaner passes.", (), "seconds"),
    Metric("pybroker_log_cleaner_read_bytes", _C, "Bytes of segments read by cleaner passes.", (), "bytes"),
    Metric("pybroker_log_cleaner_written_bytes", _C, "Bytes of segments written by cleaner passes.", (), "bytes"),
    # ------------------------------------------------------------------------------------------- coordinators
    Metric(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        _G,
        "Groups coordinated by this broker, by protocol and state.",
        ("protocol", "state"),
        kafka="kafka.server:type=group-coordinator-metrics,name=group-count,protocol=([-.\\w]+)",
    ),
    Metric(
        "kafka_coordinator_transaction_transactions",
        _G,
        "Transactional ids coordinated by this broker, by state.",
        ("state",),
    ),
    # ------------------------------------------------------------------------------------ controller and quorum
    _controller("ActiveControllerCount", "1 if this node is the active controller, else 0."),
    _controller("GlobalTopicCount", "Topics of the cluster."),
    _controller("GlobalPartitionCount", "Partitions of the cluster."),
    _controller("OfflinePartitionsCount", "Partitions of the cluster without a leader."),
    _controller(
        "PreferredReplicaImbalanceCount", "Partitions of the cluster whose leader is not the preferred replica."
    ),
    _controller("FencedBrokerCount", "Registered brokers that are fenced."),
    _controller("ActiveBrokerCount", "Registered brokers that are not fenced."),
    _controller("MetadataErrorCount", "Times that a component of this node failed to apply metadata."),
    _controller("LastAppliedRecordOffset", "Offset of the last metadata record applied by this node."),
    Metric(
        "kafka_controller_controllerstats_uncleanleaderelections",
        _C,
        "Unclean leader elections committed by this node as the active controller. Each can lose records.",
        kafka="kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
    ),
    _raft("current-leader", "Node id of the leader of the metadata quorum; -1 without a leader."),
    _raft("current-epoch", "Leader epoch of the metadata quorum."),
    _raft("high-watermark", "High watermark of the metadata log."),
    _raft("log-end-offset", "End offset of this voter's metadata log."),
    Metric(
        "kafka_server_raft_metrics_commit_latency_seconds",
        _H,
        "Time from the active controller's proposal of a batch of records until a majority of voters has the batch and "
        "this node has published it.",
        (),
        "seconds",
        "kafka.server:type=raft-metrics,name=commit-latency-avg",
    ),
    Metric(
        "kafka_controller_controllereventmanager_event_seconds",
        _H,
        "Time from submitting a request's event to the active controller until its records are committed and "
        "published. Corresponds to Kafka's EventQueueTimeMs and EventQueueProcessingTimeMs, plus the commit.",
        (),
        "seconds",
        "kafka.controller:type=ControllerEventManager,name=EventQueueProcessingTimeMs",
    ),
    # ---------------------------------------------------------------------------------------------- the process
    Metric(
        "kafka_server_kafkaserver_brokerstate",
        _G,
        "State of the broker: 1 starting, 2 recovering, 3 running, 6 and 7 stopping.",
        kafka="kafka.server:type=KafkaServer,name=BrokerState",
    ),
    Metric("pybroker_build_info", _G, "Constant 1, with the version as label.", ("version",)),
    Metric("process_cpu_seconds", _C, "CPU time of the process.", (), "seconds"),
    Metric("process_resident_memory_bytes", _G, "Resident memory of the process.", (), "bytes"),
    Metric("process_open_fds", _G, "Open file descriptors of the process."),
    Metric("process_start_time_seconds", _G, "Start time of the process, in seconds since 1970.", (), "seconds"),
)
"""All metrics, in the order of the reference."""

BY_NAME = {metric.name: metric for metric in METRICS}
