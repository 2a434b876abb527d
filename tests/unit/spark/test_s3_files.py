"""What pyarrow's client for S3 gets of Hadoop's settings."""

from __future__ import annotations

import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from sqlstream.spark.jvm.jars import OBJECT_STORE_JAR
from sqlstream.spark.storage.s3_files import SETTINGS, s3_arguments


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({}, {}),
        ({"endpoint.region": "eu-central-1"}, {"region": "eu-central-1"}),
        (
            {"access.key": "a", "secret.key": "b", "session.token": "c"},
            {"access_key": "a", "secret_key": "b", "session_token": "c"},
        ),
        ({"endpoint": "http://h:9/", "path.style.access": "true"}, {"endpoint_override": "h:9", "scheme": "http"}),
        (
            {"endpoint": "h:9", "connection.ssl.enabled": "false"},
            {"endpoint_override": "h:9", "scheme": "http", "force_virtual_addressing": True},
        ),
        ({"endpoint": "h", "path.style.access": "TRUE"}, {"endpoint_override": "h", "scheme": "https"}),
        (
            {"aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"anonymous": True},
        ),
        ({"assumed.role.arn": "arn:aws:iam::1:role/r"}, {"role_arn": "arn:aws:iam::1:role/r"}),
        ({"access.key": "all", "bucket.b.access.key": "own", "bucket.c.access.key": "other"}, {"access_key": "own"}),
    ],
)
def test_settings_become_arguments(settings: dict[str, str], arguments: dict[str, object]) -> None:
    """A setting for one bucket replaces that for all."""
    named = {f"{SETTINGS}{name}": value for name, value in settings.items()}
    assert s3_arguments("b", {**named, "spark.master": "local[2]"}) == arguments


def test_the_jar_has_the_class() -> None:
    """The jar for executors has the class files of ObjectStoreFiles.java, for Java 17."""
    with ZipFile(OBJECT_STORE_JAR) as jar:
        names = {name for name in jar.namelist() if not name.endswith("/")}
        assert names == {"sqlstream/ObjectStoreFiles.class", "sqlstream/ObjectStoreFiles$OneRequest.class"}
        assert all(jar.read(name)[6:8] == b"\x00\x3d" for name in names)  # 61: Java 17


def test_the_jar_is_newer_than_its_source() -> None:
    """Whoever changes the source compiles it again: both change in one commit."""
    folder = OBJECT_STORE_JAR.parent
    log = ["git", "log", "-1", "--format=%H", "--"]
    commits = {
        name: subprocess.run([*log, str(folder / name)], cwd=folder, capture_output=True, text=True, check=False).stdout
        for name in ("ObjectStoreFiles.java", OBJECT_STORE_JAR.name)
    }
    if not (Path(__file__).parents[3] / ".git").exists():
        pytest.skip("not a clone")
    assert len(set(commits.values())) == 1
