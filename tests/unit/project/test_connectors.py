"""The table of connectors, and connectors.lock."""

from __future__ import annotations

import pytest

from sqlstream.compiler.spark_versions import TESTED
from sqlstream.errors import FindingsError
from sqlstream.project.connectors.connectors import (
    CONNECTORS,
    FILE_SYSTEMS,
    JDBC_DRIVERS,
    SUMS,
    Connector,
    ConnectorRelease,
    Jar,
    jars_of,
)
from sqlstream.project.connectors.lock import ConnectorsLock, lock_text, read_lock
from sqlstream.project.formats.formats import FORMATS

JAR = Jar("org.example:thing_2.13:1.2", "a" * 64)


def test_every_jar_of_the_table_has_a_checksum_and_is_used() -> None:
    """The checksums cover exactly the jars of all releases."""
    releases = [
        release
        for connector in CONNECTORS.values()
        for release in (*connector.releases.values(), ConnectorRelease(connector.any_spark))
    ]

    assert {jar for release in releases for jar in release.jars} == set(SUMS)
    assert all(len(jar.sha256) == 64 for release in releases for jar in jars_of(release))


def test_formats_and_addresses_name_connectors_of_the_table() -> None:
    """No format, no URL and no path refers to a connector that does not exist."""
    formats = {entry.connector for entry in FORMATS.values() if entry.connector}
    named = formats | set(JDBC_DRIVERS.values()) | set(FILE_SYSTEMS.values())

    assert named | {"protobuf"} == set(CONNECTORS)  # only the values of messages can be Protobuf


@pytest.mark.parametrize("spark", TESTED)
def test_kafka_avro_and_s3_have_jars_for_every_tested_spark(spark: str) -> None:
    """A release for an earlier Spark names its own version."""
    for name in ("kafka", "avro", "s3"):
        release = CONNECTORS[name].release_for(spark)

        assert release is not None
        assert release.stands_in in ("", *(jar.rpartition(":")[2] for jar in release.jars))


def test_a_later_spark_gets_the_newest_release_only_if_the_connector_follows() -> None:
    """A table format works only with its own Spark; a version that is too old gets no release either."""
    releases = {"4.1": ConnectorRelease(("a:b:1",)), "4.2": ConnectorRelease(("a:b:2",))}

    assert Connector("x", "X", releases, follows=True).release_for("4.10") == ConnectorRelease(("a:b:2",), "2")
    assert Connector("x", "X", releases).release_for("4.10") is None
    assert Connector("x", "X", releases, follows=True).release_for("4.0") is None


def test_a_jar_knows_its_place_in_a_maven_repository() -> None:
    """The path has the group as folders."""
    assert JAR.path == "org/example/thing_2.13/1.2/thing_2.13-1.2.jar"


def test_the_lock_survives_writing_and_reading() -> None:
    """Versions, connectors and packages keep their jars, and the text has a fixed order."""
    lock = ConnectorsLock({"4.3": {"kafka": (JAR,), "org.a:b:1 org.c:d:2": (JAR,)}, "4.1": {"kafka": (JAR,)}})

    assert read_lock(lock_text(lock)) == lock
    assert lock_text(read_lock(lock_text(lock))) == lock_text(lock)


def test_new_jars_keep_those_of_other_targets_and_versions() -> None:
    """`deps` for one target removes nothing that another target uses."""
    lock = ConnectorsLock({"4.1": {"kafka": (JAR,)}, "4.3": {"avro": (JAR,)}})

    new = lock.with_jars("4.3", {"kafka": (JAR,)})

    assert new.find("4.1", "kafka") == new.find("4.3", "avro") == new.find("4.3", "kafka") == (JAR,)
    assert lock.without("4.3").find("4.3", "avro") is None
    assert lock.with_jars("4.2", {}) == lock


@pytest.mark.parametrize(
    "text",
    [
        "version: 2\nspark: {}\n",
        "version: 1\nspark: [a]\n",
        "version: 1\nspark: {'4.3': [a]}\n",
        "version: 1\nspark: {'4.3': {kafka: {}}}\n",
        "version: 1\nspark: {'4.3': {kafka: {'org.a:b:1': abc}}}\n",
        "version: 1\nspark: {'4.3': {kafka: {'../b': " + "a" * 64 + "}}}\n",
    ],
)
def test_a_file_that_is_not_a_lock_is_a_finding(text: str) -> None:
    """Wrong versions, shapes, coordinates and checksums are refused."""
    with pytest.raises(FindingsError) as refused:
        read_lock(text)

    assert [finding.code for finding in refused.value.findings] == ["connector-lock"]


def test_a_merge_conflict_is_a_yaml_error() -> None:
    """The finding names the line of the conflict marker."""
    with pytest.raises(FindingsError) as refused:
        read_lock("version: 1\nspark:\n<<<<<<< HEAD\n  '4.3': {}\n=======\n")

    location = refused.value.findings[0].location
    assert location is not None
    assert location.path == "connectors.lock"
