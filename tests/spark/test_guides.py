"""The Python of Spark's guides runs, in the session of the tests; what a page takes as given is made here."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pybroker.client import Producer
from pybroker.testing import Broker
from tests.support import guides

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java

NOON = datetime.datetime(2017, 3, 1, 12, 0, 0)


def source(spark: SparkSession, servers: str, directory: Path) -> dict[str, Any]:
    with Producer(servers) as producer:
        producer.send("orders", b"tea", key=b"alice")
    where = {"kafka.bootstrap.servers": servers, "subscribe": "orders"}
    return {"where": where, "frame": spark.range(3)}


def archive(spark: SparkSession, servers: str, directory: Path) -> dict[str, Any]:
    rows = spark.createDataFrame([("orders", "2017-03-01", "tea")], "topic string, date string, value string")
    rows.write.partitionBy("topic", "date").parquet(str(directory / "archive"))
    return {}


def jobs(spark: SparkSession, servers: str, directory: Path) -> dict[str, Any]:
    spark.createDataFrame([("Tea and tea",)], "value string").write.text(str(directory / "lines"))
    return {}


def robo_adviser(spark: SparkSession, servers: str, directory: Path) -> dict[str, Any]:
    days = [("000001", "bank", NOON.date() + datetime.timedelta(day), 9.0 + day, 8.0 + day) for day in range(21)]
    columns = "code string, name string, trade_date date, high double, low double"
    return {"history": spark.createDataFrame(days, columns)}


def exactly_once(spark: SparkSession, servers: str, directory: Path) -> dict[str, Any]:
    # A source that ends: one that goes on, like `rate`, may have new rows whenever a batch is done.
    (directory / "rows").mkdir()
    (directory / "rows" / "first.txt").write_text("one\ntwo\n")
    return {"rows": spark.readStream.text(str(directory / "rows"))}


def nothing(spark: SparkSession, servers: str, directory: Path) -> dict[str, Any]:
    return {}


GIVEN: dict[str, Callable[[SparkSession, str, Path], dict[str, Any]]] = {
    "docs/guides/spark-archive.md": archive,
    "docs/guides/spark-exactly-once.md": exactly_once,
    "docs/guides/spark-jobs.md": jobs,
    "docs/guides/spark-robo-adviser.md": robo_adviser,
    "docs/guides/spark-source.md": source,
    "docs/guides/spark-streams.md": nothing,
}


def test_every_page_of_spark_with_python_is_run() -> None:
    pages = [page for page in guides.pages() if "/spark-" in page]
    run = [page for page in pages if any(b.language == "python" and not b.why_not for b in guides.blocks(page))]
    assert run == sorted(GIVEN)


def test_spark_parses_the_statements_about_tables(spark: SparkSession) -> None:
    code = "".join(block.code for block in guides.blocks("docs/guides/spark-tables.md"))
    statements = re.findall(r'sql\("""(.*?)"""\)', code, re.DOTALL)
    parser = spark._jsparkSession.sessionState().sqlParser()
    kinds = [parser.parsePlan(statement).getClass().getSimpleName() for statement in statements]
    assert kinds == ["CreateTable", "MergeIntoTable", "MergeIntoTable"]


@pytest.mark.parametrize("page", sorted(GIVEN))
def test_the_python_of_a_page_runs(spark: SparkSession, broker: Broker, page: str, tmp_path: Path) -> None:
    names = GIVEN[page](spark, broker.bootstrap_servers, tmp_path)
    files = ["/archive", "lines", "orders.parquet", "orders.checkpoint", "word-count.checkpoint"]
    files.append("/data/checkpoints/orders-clean")
    paths = {f'"{file}"': f'"{tmp_path / file.rpartition("/")[2]}"' for file in files}
    left = guides.run(page, broker.bootstrap_servers, paths, spark=spark, **names)
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
        assert query.exception() is None
    if page.endswith("source.md"):
        assert left["query"].exception() is None
        assert spark.read.parquet(str(tmp_path / "orders.parquet")).count() == 1
