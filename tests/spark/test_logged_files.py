"""The log of a sink of files that sqlstream writes without the JVM: Spark reads it, and continues it."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sqlstream.compiler.compiled import Output
from sqlstream.location import Location
from sqlstream.project.files.paths import escaped
from sqlstream.spark.jvm.file_sink import add_batch, file_sink
from sqlstream.spark.writing.logged_files import add_files, compact_interval, remove_leftovers
from tests.spark.conftest import bare_session

OUTPUT = Output("lake", "parquet", None, ("k",), {}, Location("sinks.yml", 1, 1))
VALUES = ["x:y é/%+ b{}[]^|'\"", "", "日本", "a=b"]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A session whose sinks of files compact their log after three batches."""
    started = bare_session("local[1]", spark__sql__streaming__fileSink__log__compactInterval="3")
    yield started
    started.stop()


def batch(session: SparkSession, number: int) -> DataFrame:
    """Returns a row for each of `VALUES`, in two partitions."""
    rows = [(10 * number + index, value) for index, value in enumerate(VALUES)]
    return session.createDataFrame(rows, "id int, k string").repartition(2)


def read(session: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    """Returns the rows that Spark reads."""
    found = session.read.schema("id int, k string").parquet(escaped(str(folder)))
    return sorted((row["id"], row["k"] or "") for row in found.collect())


def test_spark_reads_and_continues_the_log(session: SparkSession, tmp_path: Path) -> None:
    """Batches of sqlstream and of Spark alternate in one log through compactions, in a folder with an odd name and with
    odd values of the partition column. A batch that the log has is not added again, and leaves no file.
    """
    folder = tmp_path / "a b é%+&'(=)"
    sink = file_sink(session, "parquet", str(folder), ["k"], {})
    for number in range(8):
        if number % 3 == 1:
            add_batch(sink, number, batch(session, number))
        else:
            add_files(str(folder), number, batch(session, number), OUTPUT, {})
    expected = [(10 * number + index, value) for number in range(8) for index, value in enumerate(VALUES)]
    assert read(session, folder) == expected

    files = sorted(folder.rglob("*.parquet"))
    assert len({file.name for file in files}) == len(files) == len(expected)
    add_files(str(folder), 6, batch(session, 6), OUTPUT, {})
    assert sorted(folder.rglob("*.parquet")) == files
    names = sorted(file.name for file in (folder / "_spark_metadata").iterdir() if file.name[0] != ".")
    assert names == ["0", "1", "2.compact", "3", "4", "5.compact", "6", "7"]
    assert read(session, folder) == expected


def test_a_killed_attempt_changes_nothing(session: SparkSession, tmp_path: Path) -> None:
    """Files that a killed attempt has moved, or left aside, are no rows of Spark; the next attempt adds the batch."""
    folder = tmp_path / "out"
    add_files(str(folder), 0, batch(session, 0), OUTPUT, {})
    (file, *_) = folder.rglob("*.parquet")
    shutil.copy(file, file.with_name("part-00009-lost.c000.snappy.parquet"))
    (aside := tmp_path / "_writing/out/lost").mkdir(parents=True)
    shutil.copy(file, aside / file.name)
    remove_leftovers(str(folder))
    add_files(str(folder), 1, batch(session, 1), OUTPUT, {})

    assert not list((tmp_path / "_writing/out").iterdir())
    assert len(read(session, folder)) == 2 * len(VALUES)


def test_a_missing_entry_is_an_error(session: SparkSession, tmp_path: Path) -> None:
    """A compact entry would lose the files of an entry that is missing or torn; readers then see what they saw before."""
    folder, rows = tmp_path / "out", batch(session, 0)
    for number in range(2):
        add_files(str(folder), number, rows, OUTPUT, {})
    entry = folder / "_spark_metadata/1"
    entry.write_text("v1\n{")
    with pytest.raises(OSError, match="an entry before 2 is missing or incomplete"):
        add_files(str(folder), 2, rows, OUTPUT, {})
    entry.unlink()
    with pytest.raises(OSError, match="an entry before 2 is missing or incomplete"):
        add_files(str(folder), 2, rows, OUTPUT, {})
    assert [name.name for name in entry.parent.iterdir()] == ["0"]


def test_the_interval_is_that_of_spark(session: SparkSession) -> None:
    """After one compact entry, the interval fits it and the setting as in Spark; after two, it is their distance."""
    log: Any = session._jvm.org.apache.spark.sql.execution.streaming.runtime.CompactibleFileStreamLog  # type: ignore[union-attr]
    for default, latest in itertools.product(range(1, 14), range(40)):
        found = compact_interval({latest: f"{latest}.compact"}, default)
        assert found == log.deriveCompactInterval(default, latest), (default, latest)
    assert compact_interval({3: "3", 5: "5.compact", 11: "11.compact"}, 10) == 6
    assert compact_interval({3: "3"}, 10) == 10
