"""The path of the class archive, and when there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sqlstream.errors import FindingsError, UsageError
from sqlstream.spark.jvm import class_archive
from sqlstream.spark.jvm.class_archive import ARCHIVE_VARIABLE, archive_path, cache_folder, is_complete, use_options

WHOLE = bytes.fromhex("a8ab0bf0") + b"\0" * 100


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """Returns a Java that does nothing."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin/java").write_text("#!/bin/sh\n")
    (home / "bin/java").chmod(0o755)
    (home / "release").write_text('JAVA_VERSION="17.0.1"\n')
    (home / "lib").mkdir()
    (home / "lib/modules").write_text("classes")
    return home


@pytest.fixture
def env(java: Path, tmp_path: Path) -> dict[str, str]:
    """Returns an environment with that Java and a separate cache folder."""
    return {"JAVA_HOME": str(java), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_each_java_has_its_own_archive(env: dict[str, str], java: Path, tmp_path: Path) -> None:
    """A changed Java at the same path has another archive; an unchanged one keeps its archive."""
    first = archive_path(env)
    assert first is not None
    assert first == archive_path(env)
    assert first.parent == tmp_path / "cache/sqlstream"
    (java / "lib/modules").write_text("more classes")
    assert archive_path(env) not in (None, first)


@pytest.mark.parametrize("lacks", ["off", "no home", "no java"])
def test_archives_can_be_impossible(env: dict[str, str], tmp_path: Path, lacks: str) -> None:
    """Without a home folder or Java, or if archives are disabled, none is used or built."""
    changed = {
        "off": {**env, ARCHIVE_VARIABLE: "off"},
        "no home": {"JAVA_HOME": env["JAVA_HOME"]},
        "no java": {**env, "JAVA_HOME": str(tmp_path / "nowhere")},
    }[lacks]
    assert archive_path(changed) is None
    assert use_options(changed) == ""
    with pytest.raises((UsageError, FindingsError)):
        class_archive.build(changed)


def test_only_a_complete_archive_is_used(env: dict[str, str]) -> None:
    """The JVM writes the first bytes last."""
    archive = archive_path(env)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    for content in (b"", b"\0" * 100):
        archive.write_bytes(content)
        assert not is_complete(archive)
        assert use_options(env) == ""
    archive.write_bytes(WHOLE)
    assert is_complete(archive)
    assert use_options(env).endswith(f"-XX:SharedArchiveFile={archive}")


def test_a_path_with_a_space_is_not_used(env: dict[str, str], tmp_path: Path) -> None:
    """Spark splits the JVM's options at spaces."""
    env["XDG_CACHE_HOME"] = str(tmp_path / "my cache")
    archive = archive_path(env)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    archive.write_bytes(WHOLE)
    assert use_options(env) == ""


def test_the_cache_folder_follows_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in XDG_CACHE_HOME or .cache, and on macOS below Library."""
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder({"HOME": "/home/ann"}) == Path("/home/ann/.cache/sqlstream")
    assert cache_folder({"HOME": "/home/ann", "XDG_CACHE_HOME": "/var/c"}) == Path("/var/c/sqlstream")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder({"HOME": "/Users/ann"}) == Path("/Users/ann/Library/Caches/sqlstream")


@pytest.mark.parametrize(("version", "kept"), [("17.0.15", False), ("18.0.2", False), ("19", True), ("25.0.1", True)])
def test_a_later_java_keeps_its_archive(env: dict[str, str], java: Path, version: str, kept: bool) -> None:
    """From Java 19 on, a run lets the JVM write the archive; the JVM of Spark's parser only uses one that exists."""
    (java / "release").write_text(f'JAVA_VERSION="{version}"\n')
    archive = archive_path(env)
    assert archive is not None

    assert use_options(env).endswith(f"-XX:SharedArchiveFile={archive} -XX:+AutoCreateSharedArchive") is kept
    assert archive.parent.is_dir() is kept
    assert use_options(env, keep=False) == ""
    assert ("the next run writes it" in class_archive.describe(env)) is kept

    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(WHOLE)
    assert use_options(env, keep=False).endswith(f"-XX:SharedArchiveFile={archive}")
    assert class_archive.describe(env) == f"{archive} (0 MB)"


def test_a_failed_build_leaves_nothing(env: dict[str, str]) -> None:
    """If Java writes no archive, the error has the last line of the training run, and no file remains."""
    archive = archive_path(env)
    assert archive is not None
    with pytest.raises(UsageError, match="Java wrote no class archive"):
        class_archive.build({**os.environ, **env})  # this Java does nothing
    assert list(archive.parent.iterdir()) == []


def test_removal_is_complete(env: dict[str, str]) -> None:
    """Removal deletes the archives of every Java and the files beside them, even if archives are disabled."""
    archive = archive_path(env)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    (archive.parent / "other").touch()
    for name in ("spark-a.jsa", "spark-b.jsa", "spark-c.1234"):
        (archive.parent / name).write_bytes(b"x" * 2_000_000)

    removed = class_archive.remove({**env, ARCHIVE_VARIABLE: "off"})

    assert [(path.name, megabytes) for path, megabytes in removed] == [("spark-a.jsa", 2), ("spark-b.jsa", 2)]
    assert [path.name for path in archive.parent.iterdir()] == ["other"]
    assert class_archive.remove(env) == []
