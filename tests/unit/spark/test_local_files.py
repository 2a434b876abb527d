"""The jar with classes for files, and where Spark gets the one for files of this machine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest
from pyspark import SparkContext

from sqlstream.spark.jvm.jars import FILES_JAR
from sqlstream.spark.jvm.launch import FILE_SYSTEM, LOCAL_FILES, with_local_files

CLASSES = {
    "LocalFiles": ["LocalFiles", "LocalFiles$WithoutProcesses"],
    "ObjectStoreFiles": ["ObjectStoreFiles", "ObjectStoreFiles$OneRequest"],
}


def test_the_jar_is_made_of_its_sources() -> None:
    """The jar has the class files of both sources for Java 17, and the digest of each source."""
    with ZipFile(FILES_JAR) as jar:
        names = {name for name in jar.namelist() if name.endswith(".class")}
        assert names == {f"sqlstream/{name}.class" for classes in CLASSES.values() for name in classes}
        assert all(jar.read(name)[6:8] == b"\x00\x3d" for name in names)  # 61: Java 17
        for name in CLASSES:
            source = FILES_JAR.with_name(f"{name}.java").read_bytes()
            assert jar.read(f"{name}.sha256").split()[0].decode() == hashlib.sha256(source).hexdigest()


@pytest.mark.parametrize(
    ("gateway", "variables", "settings", "found"),
    [
        (None, {}, {}, LOCAL_FILES),
        (None, {}, {FILE_SYSTEM: "org.example.Files"}, "org.example.Files"),
        (None, {"PYSPARK_GATEWAY_PORT": "1"}, {}, None),
        (None, {"SPARK_CONF_DIR": "conf"}, {}, None),
        ({}, {}, {}, None),
        ({"jars": frozenset()}, {}, {}, None),
        ({"jars": frozenset([str(FILES_JAR)])}, {}, {}, LOCAL_FILES),
    ],
    ids=[
        "to be launched",
        "of the user",
        "of spark-submit",
        "with spark-env.sh",
        "of a program",
        "for a cluster",
        "launched",
    ],
)
def test_only_a_jvm_that_has_the_class_uses_it(
    gateway: dict[str, object] | None,
    variables: dict[str, str],
    settings: dict[str, str],
    found: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The setting of the user counts, and a JVM that sqlstream did not launch with the class keeps Hadoop's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/spark-env.sh").touch()
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(SparkContext, "_gateway", None if gateway is None else SimpleNamespace(**gateway))

    assert with_local_files(settings).get(FILE_SYSTEM) == found
