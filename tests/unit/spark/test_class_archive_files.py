"""Where a class-data archive belongs, and when there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sqlstream.app.running import class_archive
from sqlstream.spark.jvm.class_archive import SWITCH, archive_path, cache_folder, is_whole, use_options

WHOLE = bytes.fromhex("a8ab0bf0") + b"\0" * 100


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A Java that is there and does nothing."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin/java").write_text("#!/bin/sh\n")
    (home / "bin/java").chmod(0o755)
    (home / "lib").mkdir()
    (home / "lib/modules").write_text("classes")
    return home


@pytest.fixture
def env(java: Path, tmp_path: Path) -> dict[str, str]:
    """An environment with that Java and a cache folder of its own."""
    return {"JAVA_HOME": str(java), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_each_java_has_an_archive_of_its_own(env: dict[str, str], java: Path, tmp_path: Path) -> None:
    """Another Java in the same place too; the same one always has the same."""
    first = archive_path(env)
    assert first is not None
    assert first == archive_path(env)
    assert first.parent == tmp_path / "cache/sqlstream"
    (java / "lib/modules").write_text("more classes")
    assert archive_path(env) not in (None, first)


@pytest.mark.parametrize("lacks", ["off", "no home", "no java"])
def test_there_may_be_no_archive(env: dict[str, str], tmp_path: Path, lacks: str) -> None:
    """Then nothing is used, and nothing made."""
    changed = {
        "off": {**env, SWITCH: "off"},
        "no home": {"JAVA_HOME": env["JAVA_HOME"]},
        "no java": {**env, "JAVA_HOME": str(tmp_path / "nowhere")},
    }[lacks]
    assert archive_path(changed) is None
    assert use_options(changed) == ""
    assert class_archive.make_archive(changed) is None


def test_only_a_whole_archive_is_used(env: dict[str, str]) -> None:
    """The JVM writes the first bytes last."""
    archive = archive_path(env)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    for content in (b"", b"\0" * 100):
        archive.write_bytes(content)
        assert not is_whole(archive)
        assert use_options(env) == ""
    archive.write_bytes(WHOLE)
    assert is_whole(archive)
    assert use_options(env).endswith(f"-XX:SharedArchiveFile={archive}")


def test_a_path_with_a_blank_is_not_used(env: dict[str, str], tmp_path: Path) -> None:
    """Spark takes the options of the JVM apart at blanks."""
    env["XDG_CACHE_HOME"] = str(tmp_path / "my cache")
    archive = archive_path(env)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    archive.write_bytes(WHOLE)
    assert use_options(env) == ""


def test_the_cache_is_where_the_system_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_CACHE_HOME, or else .cache; on macOS below Library."""
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder({"HOME": "/home/ann"}) == Path("/home/ann/.cache/sqlstream")
    assert cache_folder({"HOME": "/home/ann", "XDG_CACHE_HOME": "/var/c"}) == Path("/var/c/sqlstream")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder({"HOME": "/Users/ann"}) == Path("/Users/ann/Library/Caches/sqlstream")


def test_what_fails_is_not_tried_again_soon(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that writes no archive leaves none, and no process is begun for it the next time."""
    archive = archive_path(env)
    assert archive is not None
    assert class_archive.make_archive({**os.environ, **env}) is None  # this Java does nothing at all
    assert not archive.exists()
    begun: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **_: begun.append(args))
    class_archive.make_later(env)
    assert begun == []
    os.utime(archive.with_suffix(".failed"), (0, 0))
    class_archive.make_later(env)
    assert len(begun) == 1


def test_an_archive_that_nobody_uses_is_dropped(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """When another one is made; one that was used lately stays."""
    archive = archive_path(env)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    old, young = archive.with_name("spark-old.jsa"), archive.with_name("spark-young.jsa")
    for path in (old, young):
        path.write_bytes(WHOLE)
    os.utime(old, (0, 0))
    monkeypatch.setattr(class_archive, "_train", lambda made, _env: made.write_bytes(WHOLE))
    assert class_archive.make_archive(env) == archive
    assert {path.name for path in archive.parent.glob("*.jsa")} == {archive.name, young.name}
