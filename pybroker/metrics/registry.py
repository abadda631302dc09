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
            f"Of one topic: {words[0].lower()}{words[1:]}",
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
    *_topics("bytesin", "BytesInPerSec", "Bytes of the batches that producers had appended.", "bytes"),
    *_topics("bytesout", "BytesOutPerSec", "Bytes of records sent to consumers.", "bytes"),
    *_topics("bytesrejected", "BytesRejectedPerSec", "Bytes of batches refused as too large.", "bytes"),
    *_topics("messagesin", "MessagesInPerSec", "Records that producers had appended."),
    *_topics(
        "totalproducerequests",
        "TotalProduceRequestsPerSec",
        "Partitions that Produce requests named, as Kafka counts them.",
    ),
    *_topics(
        "failedproducerequests",
        "FailedProduceRequestsPerSec",
        "Those of them that failed for another reason than a leader that moved, a topic that is unknown, a batch that "
        "is too large or damaged, or a failed disk.",
    ),
    *_topics(
        "totalfetchrequests",
        "TotalFetchRequestsPerSec",
        "Partitions that were read for Fetch requests, of consumers and of followers; once more where the Fetch had "
        "waited.",
    ),
    *_topics(
        "failedfetchrequests",
        "FailedFetchRequestsPerSec",
        "Those of them that failed for another reason than a leader that moved, an offset out of range, a topic that "
        "is unknown or a failed disk.",
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
        "Topics beyond metrics.topics.max: neither they nor their partitions have series of their own.",
    ),
    # ---------------------------------------------------------------------------------------------- requests
    Metric(
        "kafka_network_requestmetrics_requests",
        _C,
        "Requests begun.",
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
        "Bytes of answers, size prefixes included.",
        ("request",),
        "bytes",
    ),
    Metric(
        "kafka_network_requestmetrics_inwork",
        _G,
        "Requests begun and not answered, those that wait for data or for others included.",
        ("request",),
    ),
    Metric(
        "kafka_network_requestmetrics_errors",
        _C,
        "Error codes in answers to Produce and Fetch, one for each partition or for the whole answer.",
        ("request", "error"),
        kafka="kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=([-.\\w]+),error=([-.\\w]+)",
    ),
    _time("requestqueuetime", "RequestQueueTimeMs", "From the last byte of a request to when it was worked on."),
    _time("localtime", "LocalTimeMs", "How long requests were worked on here."),
    _time(
        "remotetime",
        "RemoteTimeMs",
        "How long requests waited for data, for other replicas, for a sync, or for other nodes.",
    ),
    _time("throttletime", "ThrottleTimeMs", "How long clients were to wait for their quotas, after the answer."),
    _time(
        "responsesendtime",
        "ResponseSendTimeMs",
        "From an answer's making to its last byte in the socket: Kafka's ResponseQueueTimeMs and ResponseSendTimeMs.",
    ),
    _time("totaltime", "TotalTimeMs", "From the last byte of a request to the last byte of its answer."),
    Metric(
        "pybroker_control_requests",
        _C,
        "Requests that the control plane has worked on, by API and version.",
        ("request", "version"),
    ),
    Metric(
        "pybroker_control_request_failures",
        _C,
        "Those of them whose whole answer was an error.",
        ("request", "version"),
    ),
    # --------------------------------------------------------------------------------- waiting and connections
    Metric(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        _G,
        "Requests that wait: a Produce for other replicas or a sync, a Fetch for data.",
        ("delayedOperation",),
        kafka="kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,delayedOperation=([-.\\w]+)",
    ),
    Metric(
        "kafka_server_delayedoperation_expires",
        _C,
        "Requests that have waited as long as they might.",
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
        "Connections of a listener that have ended.",
        ("listener",),
        kafka="kafka.server:type=socket-server-metrics,listener=([-.\\w]+),name=connection-close-total",
    ),
    Metric(
        "kafka_server_socket_server_metrics_connection_accept_throttle_time_seconds",
        _C,
        "How long connections waited to be accepted by a listener, as they came faster than "
        "max.connection.creation.rate.",
        ("listener",),
        "seconds",
        "kafka.server:type=socket-server-metrics,listener=([-.\\w]+),name=connection-accept-throttle-time",
    ),
    Metric(
        "kafka_server_socket_server_metrics_ip_connection_accept_throttle_time_seconds",
        _C,
        "How long connections to a listener were kept, one by one, before they were closed, as their address was "
        "faster than its connection_creation_rate.",
        ("listener",),
        "seconds",
        "kafka.server:type=socket-server-metrics,listener=([-.\\w]+),name=ip-connection-accept-throttle-time",
    ),
    Metric(
        "kafka_server_socket_server_metrics_ip_connection_accept",
        _C,
        "Connections accepted from an address that has a connection_creation_rate.",
        ("ip",),
        kafka="kafka.server:type=socket-server-metrics,ip=(.+),name=connection-accept-rate",
    ),
    # ------------------------------------------------------------------------------- clients that have a quota
    _clients("bytes", "Produce", "byte-rate", "Bytes of Produce requests of those whom a quota binds.", "bytes"),
    _throttled("Produce", "How long they were to wait for producer_byte_rate."),
    _clients("bytes", "Fetch", "byte-rate", "Bytes of answers to Fetch of those whom a quota binds.", "bytes"),
    _throttled("Fetch", "How long they were to wait for consumer_byte_rate."),
    _clients(
        "request_time_seconds",
        "Request",
        "request-time",
        "How long threads worked for those whom a quota of that binds.",
        "seconds",
    ),
    _throttled("Request", "How long they were to wait for request_percentage."),
    _clients(
        "tokens",
        "ControllerMutation",
        "tokens",
        "Partitions that those whom a quota of that binds may have made and deleted now, at the node that decides "
        "about topics; negative where it was too many.",
        is_gauge=True,
    ),
    _clients("partitions", "ControllerMutation", "rate", "Partitions that they had made and deleted."),
    _throttled("ControllerMutation", "How long they were to wait for controller_mutation_rate."),
    Metric(
        "pybroker_metrics_clients_omitted",
        _G,
        "Those beyond metrics.clients.max, who used least: users and client ids by the quota that binds them, and "
        "addresses as ip. They have no series of their own.",
        ("quota",),
    ),
    Metric(
        "kafka_network_processor_cpu_seconds",
        _C,
        "CPU time of a network thread. One that grows by a second each second is never idle (Kafka's IdlePercent is "
        "the share of time without work).",
        ("networkProcessor",),
        "seconds",
        "kafka.network:type=Processor,name=IdlePercent,networkProcessor=([0-9]+)",
    ),
    Metric(
        "kafka_server_ssl_certificate_expiry_seconds",
        _G,
        "Seconds until the certificate of a listener ends; negative when it has.",
        ("listener",),
        "seconds",
    ),
    # ------------------------------------------------------------------------------------------- replicas, logs
    _replicas("LeaderCount", "Partitions that this broker leads."),
    _replicas("PartitionCount", "Partitions that this broker has a replica of."),
    _replicas("OfflineReplicaCount", "Replicas of this broker in log directories that have failed."),
    _replicas("UnderReplicatedPartitions", "Partitions that this broker leads with a replica that is not in sync."),
    _replicas(
        "UnderMinIsrPartitionCount",
        "Partitions that this broker leads with fewer replicas in sync than min.insync.replicas.",
    ),
    _replicas(
        "AtMinIsrPartitionCount", "Partitions that this broker leads with exactly min.insync.replicas replicas in sync."
    ),
    _replicas(
        "IsrShrinks", "Times that an in-sync replica left a partition that this broker leads.", _C, "IsrShrinksPerSec"
    ),
    _replicas(
        "IsrExpands", "Times that a replica came in sync of a partition that this broker leads.", _C, "IsrExpandsPerSec"
    ),
    _replicas(
        "FailedIsrUpdates", "Changes of in-sync replicas that the controller refused.", _C, "FailedIsrUpdatesPerSec"
    ),
    _log("Size", "Bytes of a partition's log.", "bytes"),
    _log("NumLogSegments", "Segments of a partition's log."),
    _log("LogStartOffset", "The first readable offset of a partition."),
    _log("LogEndOffset", "The offset that the next record of a partition gets."),
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
        "Log directories that have failed.",
        kafka="kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
    ),
    Metric("pybroker_log_group_flush_syncs", _C, "Syncs of logs with flush=group."),
    Metric("pybroker_log_group_flush_appends", _C, "Appends that these syncs made durable."),
    Metric(
        "pybroker_log_recovered_bytes",
        _C,
        "Bytes of segments that recoveries after an unclean stop have read and checked.",
        (),
        "bytes",
    ),
    Metric(
        "kafka_log_logmanager_remaininglogstorecover",
        _G,
        "Logs that the recovery of a directory after an unclean stop has left.",
        ("directory",),
        kafka="kafka.log:type=LogManager,name=remainingLogsToRecover,dir=(.+)",
    ),
    Metric(
        "pybroker_log_remaining_recovery_bytes",
        _G,
        "Bytes of segments that this recovery has left to read and check.",
        ("directory",),
        "bytes",
    ),
    Metric(
        "kafka_log_logflushstats_flushes",
        _C,
        "Times that a log was made durable: its segments, its indexes and its directory were synced.",
        kafka="kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
    ),
    Metric("kafka_log_logflushstats_seconds", _C, "How long these took, together.", (), "seconds"),
    Metric(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        _G,
        "Compacted partitions that are damaged and left alone by the cleaner.",
        kafka="kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count,logDirectory=(.+)",
    ),
    Metric(
        "kafka_log_logcleanermanager_max_dirty_percent",
        _G,
        "Bytes that can be cleaned of the filthiest compacted log, in percent of these and "
        "the clean ones, at the last check.",
        kafka="kafka.log:type=LogCleanerManager,name=max-dirty-percent",
    ),
    Metric(
        "kafka_log_logcleanermanager_time_since_last_run_seconds",
        _G,
        "Time since the cleaner last checked for a log that is due.",
        (),
        "seconds",
        "kafka.log:type=LogCleanerManager,name=time-since-last-run-ms",
    ),
    Metric("pybroker_log_cleaner_due_logs", _G, "Logs that are due for cleaning, at the last check."),
    Metric(
        "pybroker_log_cleaner_due_bytes", _G, "Bytes of these logs that can be cleaned, at the last check.", (), "bytes"
    ),
    Metric("pybroker_log_cleaner_passes", _C, "Passes of the cleaner over a log that have ended."),
    Metric("pybroker_log_cleaner_seconds", _C, "How long these passes took, together.", (), "seconds"),
    Metric("pybroker_log_cleaner_read_bytes", _C, "Bytes of the segments that these passes read.", (), "bytes"),
    Metric("pybroker_log_cleaner_written_bytes", _C, "Bytes of the segments in their place.", (), "bytes"),
    # ------------------------------------------------------------------------------------------- coordinators
    Metric(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        _G,
        "Groups whose coordinator is this broker, by protocol and state.",
        ("protocol", "state"),
        kafka="kafka.server:type=group-coordinator-metrics,name=group-count,protocol=([-.\\w]+)",
    ),
    Metric(
        "kafka_coordinator_transaction_transactions",
        _G,
        "Transactional ids whose coordinator is this broker, by state.",
        ("state",),
    ),
    # ------------------------------------------------------------------------------------ controller and quorum
    _controller("ActiveControllerCount", "1 where this node is the active controller, else 0."),
    _controller("GlobalTopicCount", "Topics of the cluster."),
    _controller("GlobalPartitionCount", "Partitions of the cluster."),
    _controller("OfflinePartitionsCount", "Partitions of the cluster without a leader."),
    _controller(
        "PreferredReplicaImbalanceCount", "Partitions of the cluster that another replica leads than the preferred."
    ),
    _controller("FencedBrokerCount", "Registered brokers that are fenced."),
    _controller("ActiveBrokerCount", "Registered brokers that are not fenced."),
    _controller("MetadataErrorCount", "Times that a part of this node could not put the metadata in force."),
    _controller("LastAppliedRecordOffset", "Offset of the last record of the metadata log that this node has applied."),
    Metric(
        "kafka_controller_controllerstats_uncleanleaderelections",
        _C,
        "Unclean leader elections that this node has committed as the active controller. Each can lose records.",
        kafka="kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
    ),
    _raft("current-leader", "Node id of the leader of the metadata quorum; -1 for none."),
    _raft("current-epoch", "Epoch of the metadata quorum."),
    _raft("high-watermark", "End of what is committed of the metadata log."),
    _raft("log-end-offset", "End of this voter's metadata log."),
    Metric(
        "kafka_server_raft_metrics_commit_latency_seconds",
        _H,
        "From when the active controller proposed a batch of records to when a majority of the voters had it and it "
        "was published here.",
        (),
        "seconds",
        "kafka.server:type=raft-metrics,name=commit-latency-avg",
    ),
    Metric(
        "kafka_controller_controllereventmanager_event_seconds",
        _H,
        "From when a request's event was handed to the active controller to when what it came to was committed and "
        "published: Kafka's EventQueueTimeMs and EventQueueProcessingTimeMs, and the commit.",
        (),
        "seconds",
        "kafka.controller:type=ControllerEventManager,name=EventQueueProcessingTimeMs",
    ),
    # ---------------------------------------------------------------------------------------------- the process
    Metric(
        "kafka_server_kafkaserver_brokerstate",
        _G,
        "1 while the broker starts, 2 while it recovers, 3 while it runs, 6 and 7 while it stops.",
        kafka="kafka.server:type=KafkaServer,name=BrokerState",
    ),
    Metric("pybroker_build_info", _G, "1, with the version.", ("version",)),
    Metric("process_cpu_seconds", _C, "CPU time of the process.", (), "seconds"),
    Metric("process_resident_memory_bytes", _G, "Memory of the process.", (), "bytes"),
    Metric("process_open_fds", _G, "Open descriptors of the process."),
    Metric("process_start_time_seconds", _G, "When the process started, in seconds since 1970.", (), "seconds"),
)
"""All metrics, in the order in which they are shown."""

BY_NAME = {metric.name: metric for metric in METRICS}
