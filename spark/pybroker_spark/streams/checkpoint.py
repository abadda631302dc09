"""The topology of a checkpoint: a file in its directory, which refuses the checkpoint of another topology.

The directory can be on any file system of Hadoop, so it is read and written by the JVM of the driver.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pybroker.streams.errors import StreamsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME: Final = "pybroker-topology.json"
_MOST_BYTES: Final = 1 << 30


def check(spark: SparkSession, checkpoint: str, application_id: str, description: str) -> None:
    """Check that a checkpoint is of this application and topology. A new checkpoint becomes theirs.

    Args:
        spark: the session.
        checkpoint: the directory.
        application_id: the id, with which the names of repartition topics begin.
        description: the text of `Topology.describe()`, and the layouts of the stores.

    Raises:
        StreamsError: the checkpoint is of another application, of another topology, or of another query.
    """
    path, system = _file(spark, checkpoint)
    if not system.exists(path):
        if system.exists(path.getParent()) and len(system.listStatus(path.getParent())):
            raise StreamsError(
                f"checkpoint {checkpoint} is of another query: it has no {NAME}. Give a new directory, or the "
                "checkpoint of this application"
            )
        _write(system, path, json.dumps({"application.id": application_id, "topology": description}))
        return
    found = json.loads(_read(system, path))
    if found["application.id"] != application_id:
        raise StreamsError(
            f"checkpoint {checkpoint} is of application {found['application.id']!r}: expected {application_id!r}. Give "
            "a new directory, or the checkpoint of this application"
        )
    if found["topology"] != description:
        raise StreamsError(
            f"checkpoint {checkpoint} is of another topology: {_difference(found['topology'], description)}. Its state "
            "has other stores and tasks. Give a new directory and another application.id"
        )


def _difference(before: str, now: str) -> str:
    """Return the first line that differs."""
    old, new = before.splitlines(), now.splitlines()
    at = next(
        (i for i, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new))
    )
    was = old[at].strip() if at < len(old) else "the end"
    return f"line {at + 1} of its description is {was!r}, and that of this topology is " + (
        repr(new[at].strip()) if at < len(new) else "the end"
    )


def _file(spark: SparkSession, checkpoint: str) -> tuple[Any, Any]:
    jvm = spark._jvm
    assert jvm is not None, "a session of this process has a JVM"
    path = jvm.org.apache.hadoop.fs.Path(checkpoint, NAME)
    return path, path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())


def _write(system: Any, path: Any, text: str) -> None:
    stream = system.create(path, False)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()


def _read(system: Any, path: Any) -> str:
    stream = system.open(path)
    try:
        return bytes(stream.readNBytes(_MOST_BYTES)).decode()
    finally:
        stream.close()
