"""Apache Kafka's jars and the Java programs in them, and the jars of Spark's Kafka connector.

Owns the classpath (resolved once by Maven into the build directory) and the command lines of tools. Knows no broker.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pybench.checkout import BENCH, build_directory, building
from pybench.peers.errors import ArtefactError, MissingToolError

KAFKA_VERSION = "4.3.1"
"""The newest release with both server and tools published. pom.xml contains the same number."""

CONNECTOR_VERSION = "4.2.0"
"""The newest published release of Spark's Kafka connector. It works with PySpark 4.2 and 4.3."""

STREAMS_VERSION = "4.4.0"
"""The release of Kafka Streams to compare with. kafka-streams.xml contains the same number."""

TOOLS = {
    "producer-perf": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf": "org.apache.kafka.tools.ConsumerPerformance",
    "end-to-end-latency": "org.apache.kafka.tools.EndToEndLatency",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "acls": "org.apache.kafka.tools.AclCommand",
    "configs": "kafka.admin.ConfigCommand",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "storage": "kafka.tools.StorageTool",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "metadata-shell": "org.apache.kafka.shell.MetadataShell",
}
"""Kafka's scripts, without `kafka-` and `.sh`, and the classes that they run."""

_SHELL = "metadata-shell"
"""The only tool that needs extra jars."""

_TOOL_HEAP = ("-Xmx512M", "-Djava.awt.headless=true")
_SHORT_LIVED = (*_TOOL_HEAP, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For short programs, which end before the C2 compiler is worthwhile. Never used for measurements."""
_ARCHIVE_TIMEOUT_S = 60
_JRE = "a JRE of version 17 or newer (Debian: openjdk-17-jdk-headless)"
_JDK = "a JDK of version 17 or newer (Debian: openjdk-17-jdk-headless)"
_LOG_CONFIG = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.follow = true
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
"""


def missing_tools() -> list[str]:
    """Return one line for each program that Kafka needs and this machine lacks."""
    lines = []
    for program, install in (
        ("java", _JRE),
        ("mvn", "Apache Maven (Debian: maven)"),
    ):
        if shutil.which(program) is None and not (program == "mvn" and _is_complete(jar_directory())):
            lines.append(f"{program} is not on the search path: install {install}")
    return lines


def jar_directory() -> Path:
    """Return the directory of the jars, fetched or not."""
    return build_directory() / "peers" / f"kafka-{KAFKA_VERSION}"


def _is_complete(directory: Path) -> bool:
    return (directory / ".complete").exists()


@cache
def fetch_jars() -> Path:
    """Fetch every jar of Kafka and its tools into one directory, and return it.

    The first call takes about half a minute and needs Maven Central. Raises MissingToolError or ArtefactError.
    """
    what = f"Apache Kafka {KAFKA_VERSION}"
    return _fetch(what, "pom.xml", jar_directory(), f"-Dkafka.version={KAFKA_VERSION}", "-DincludeScope=runtime")


@cache
def fetch_shell_jars() -> Path:
    """Fetch the jars that Kafka's metadata shell needs beside those of `fetch_jars` into one directory, and return it.

    The first call takes some seconds and needs Maven Central. Raises MissingToolError or ArtefactError.
    """
    what, directory = f"the metadata shell of Apache Kafka {KAFKA_VERSION}", build_directory() / "peers"
    return _fetch(
        what, "kafka-shell.xml", directory / f"kafka-shell-{KAFKA_VERSION}", f"-Dkafka.version={KAFKA_VERSION}"
    )


@cache
def fetch_streams_jars() -> Path:
    """Fetch Kafka Streams, its test driver and their dependencies into a directory of their own, and return it.

    The first call takes about half a minute and needs Maven Central. Raises MissingToolError or ArtefactError.
    """
    what, directory = f"Kafka Streams {STREAMS_VERSION}", build_directory() / "peers"
    version = f"-Dstreams.version={STREAMS_VERSION}"
    return _fetch(what, "kafka-streams.xml", directory / f"kafka-streams-{STREAMS_VERSION}", version)


@cache
def fetch_streams_group_jars() -> Path:
    """Fetch the group coordinator and the tools of the release of Kafka Streams into a directory, and return it.

    The first call takes about half a minute and needs Maven Central. Raises MissingToolError or ArtefactError.
    """
    what, directory = f"the group coordinator of Kafka {STREAMS_VERSION}", build_directory() / "peers"
    version = f"-Dstreams.version={STREAMS_VERSION}"
    return _fetch(what, "kafka-streams-groups.xml", directory / f"kafka-streams-groups-{STREAMS_VERSION}", version)


def connector_directory() -> Path:
    """Return the directory of the jars of Spark's Kafka connector, fetched or not."""
    return build_directory() / "peers" / f"spark-kafka-{CONNECTOR_VERSION}"


@cache
def fetch_connector_jars() -> list[Path]:
    """Fetch Spark's Kafka connector and its dependencies without Spark, for `spark.jars`.

    The first call takes about ten seconds and needs Maven Central. Raises MissingToolError or ArtefactError.
    """
    what, version = f"Spark's Kafka connector {CONNECTOR_VERSION}", f"-Dconnector.version={CONNECTOR_VERSION}"
    directory = _fetch(what, "spark-kafka.xml", connector_directory(), version, "-DexcludeTransitive=true")
    return sorted(directory.glob("*.jar"))


def _fetch(what: str, pom: str, directory: Path, *properties: str) -> Path:
    """Copy the artefacts of a pom of this directory, once."""
    if _is_complete(directory):
        return directory
    maven = _program("mvn", "Apache Maven (Debian: maven)")
    words = [maven, "-q", "-B", "-f", str(Path(__file__).with_name(pom)), "dependency:copy-dependencies"]
    words += [*properties, f"-DoutputDirectory={directory}"]
    with building():
        if not _is_complete(directory):
            fetched = subprocess.run(words, capture_output=True, text=True, check=False)
            if fetched.returncode != 0:
                raise ArtefactError(f"Maven could not fetch {what}: {fetched.stdout.strip()[-2000:]}")
            (directory / ".complete").touch()
    return directory


def java_command(main_class: str, *, options: Sequence[str] = _TOOL_HEAP, log_level: str = "warn") -> list[str]:
    """Return the command line of a Java program before its own arguments. `program` is a class or a name of `TOOLS`.

    Log lines go to standard error, so that standard output contains only the output of the tool.
    """
    jars = fetch_jars()
    log_config = jars / f"log4j2-{log_level}.properties"
    text = _LOG_CONFIG.format(level=log_level)
    if not log_config.exists() or log_config.read_text() != text:
        whole = log_config.with_suffix(f".{os.getpid()}")
        whole.write_text(text)
        whole.rename(log_config)  # another process never reads an incomplete file
    return [
        _program("java", _JRE),
        *options,
        f"-Dlog4j2.configurationFile={log_config}",
        "-cp",
        f"{jars}/*:{build_directory() / 'jclient'}" + (f":{fetch_shell_jars()}/*" if main_class == _SHELL else ""),
        TOOLS.get(main_class, main_class),
    ]


def short_java_command(main_class: str, *, log_level: str = "warn") -> list[str]:
    """As `java_command`, for a short program: it starts in a quarter of the time."""
    return java_command(main_class, options=(*_SHORT_LIVED, *_shared_classes()), log_level=log_level)


@cache
def _shared_classes() -> list[str]:
    """Return the option with which Java maps the classes of Kafka's clients from an archive. Empty if it cannot.

    An archive belongs to one Java version. Others ignore it and load the classes.
    """
    jars = fetch_jars()
    archive = jars / "clients.jsa"
    with building():
        if not archive.exists():
            whole = archive.with_suffix(f".{os.getpid()}")
            # A client without a broker loads the same classes as any other.
            words = java_command("topics", options=(*_SHORT_LIVED, f"-XX:ArchiveClassesAtExit={whole}"))
            words[words.index("-cp") + 1] = f"{jars}/*"  # an archive contains only classes from jars
            patience = jars / "patience.properties"
            patience.write_text("default.api.timeout.ms=2000\nrequest.timeout.ms=1000\n")
            words += ["--bootstrap-server", "127.0.0.1:1", "--command-config", str(patience), "--list"]
            subprocess.run(words, capture_output=True, timeout=_ARCHIVE_TIMEOUT_S, check=False)
            if not whole.exists():
                return []
            whole.rename(archive)
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def run_java_tool(
    tool: str, *arguments: str, timeout_s: float = 120, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's own tools to its end: `run_java_tool("dump-log", "--files", path)`. Its output is text."""
    words = [*short_java_command(tool), *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, input=stdin, check=False)


@cache
def build_client(name: str, sources: Path = BENCH / "jclient") -> str:
    """Compile the Java program `<sources>/<name>.java` against Kafka's client. Returns its class."""
    source, target = sources / f"{name}.java", build_directory() / "jclient"
    built, jars = target / f"{name}.class", fetch_jars()
    with building():
        if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
            compiler = _program("javac", _JDK)
            words = [compiler, "-d", str(target), "-cp", f"{jars}/*", str(source)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ArtefactError(f"javac refused {source}: {done.stderr.strip()}")
    return name


def streams_java_command(main_class: str, sources: Path, options: Sequence[str] = _SHORT_LIVED) -> list[str]:
    """Return the command line of a program that uses Kafka Streams.

    Args:
        main_class: the class to run.
        sources: the directory of its Java files. All of them are compiled if one has changed.
        options: options of the JVM; by default those of short programs.
    """
    target, jars = build_directory() / "streams" / main_class, fetch_streams_jars()
    built, files = target / f"{main_class}.class", sorted(sources.glob("*.java"))
    with building():
        if not built.exists() or built.stat().st_mtime < max(source.stat().st_mtime for source in files):
            compiler = _program("javac", _JDK)
            words = [compiler, "-nowarn", "-d", str(target), "-cp", f"{jars}/*", *map(str, files)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ArtefactError(f"javac refused {sources}: {done.stderr.strip()}")
            built.touch()
    return [_program("java", _JRE), *options, "-cp", f"{target}:{jars}/*", main_class]


def streams_group_java_command(program: str) -> list[str]:
    """Return the command line of a short program that uses `fetch_streams_group_jars`: a class, or a Java file."""
    return [_program("java", _JRE), *_SHORT_LIVED, "-cp", f"{fetch_streams_group_jars()}/*", program]


def _program(name: str, install: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise MissingToolError(name, install)
    return path
