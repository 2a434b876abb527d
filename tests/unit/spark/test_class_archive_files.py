"""The path of the class archive, and when there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sqlstream.app.running import class_archive
from sqlstream.app.running.class_archive import in_ci_or_container
from sqlstream.errors import FindingsError, UsageError
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
    assert class_archive.build_later(changed) is None
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


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Returns the commands that would start, on a machine outside containers."""
    commands: list[Sequence[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: commands.append(command))
    monkeypatch.setattr(class_archive, "in_ci_or_container", lambda env: bool(env.get("CI")))
    return commands


def test_a_run_reports_what_it_builds(env: dict[str, str], tmp_path: Path, begun: list[Sequence[str]]) -> None:
    """The notice of a build is one line with the size, the path, and how to disable archives."""
    line = class_archive.build_later(env)

    assert line is not None
    assert all(part in line for part in ("190 MB", str(tmp_path / "cache/sqlstream"), "SQLSTREAM_CLASS_ARCHIVE=off"))
    assert "\n" not in line
    assert [list(command[-3:]) for command in begun] == [["debug", "--class-archive", "build"]]


def test_in_ci_no_archive_is_built_automatically(env: dict[str, str], begun: list[Sequence[str]]) -> None:
    """In CI a run neither builds an archive nor reports one."""
    assert class_archive.build_later({**env, "CI": "true"}) is None
    assert begun == []


def test_a_build_of_another_process_is_not_reported(env: dict[str, str], begun: list[Sequence[str]]) -> None:
    """A run does not report an archive that another process builds and has reported."""
    archive = archive_path(env)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    with class_archive._locked(archive, wait=False):
        assert class_archive.build_later(env) is None
    assert begun == []


def test_a_failed_build_is_not_repeated_soon(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """If Java writes no archive, the next run starts no build."""
    archive = archive_path(env)
    assert archive is not None
    with pytest.raises(UsageError, match="Java wrote no class archive"):
        class_archive.build({**os.environ, **env})  # this Java does nothing
    assert not archive.exists()
    begun: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **_: begun.append(args))
    monkeypatch.setattr(class_archive, "in_ci_or_container", lambda _env: False)
    assert class_archive.build_later(env) is None
    assert begun == []
    os.utime(archive.with_suffix(".failed"), (0, 0))
    assert class_archive.build_later(env) is not None
    assert len(begun) == 1


def test_an_unused_archive_is_removed(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A new archive removes old ones, but not those that were used lately."""
    archive = archive_path(env)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    old, young = archive.with_name("spark-old.jsa"), archive.with_name("spark-young.jsa")
    for path in (old, young):
        path.write_bytes(WHOLE)
    os.utime(old, (0, 0))
    monkeypatch.setattr(class_archive, "_train", lambda made, _env: made.write_bytes(WHOLE))
    assert class_archive.build(env).path == archive
    assert {path.name for path in archive.parent.glob("*.jsa")} == {archive.name, young.name}


def test_removal_is_complete(env: dict[str, str]) -> None:
    """Removal deletes the archives of every Java and the files beside them, even if archives are disabled."""
    archive = archive_path(env)
    assert archive is not None
    archive.parent.mkdir(parents=True)
    (archive.parent / "other").touch()
    for name in ("spark-a.jsa", "spark-b.jsa", "spark-b.failed", "spark-c.new"):
        (archive.parent / name).write_bytes(b"x" * 2_000_000)

    removed = class_archive.remove({**env, ARCHIVE_VARIABLE: "off"})

    assert [(path.name, megabytes) for path, megabytes in removed] == [("spark-a.jsa", 2), ("spark-b.jsa", 2)]
    assert [path.name for path in archive.parent.iterdir()] == ["other"]
    assert class_archive.remove(env) == []


@pytest.mark.parametrize(
    ("env", "file", "expected"),
    [
        ({}, None, False),
        ({"CI": "false"}, None, False),
        ({"CI": "true"}, None, True),
        ({"CI": "1"}, None, True),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None, True),
        ({"container": "podman"}, None, True),
        ({}, (".dockerenv", ""), True),
        ({}, ("run/.containerenv", ""), True),
        ({}, ("proc/1/cgroup", "12:memory:/docker/4f2a\n"), True),
        ({}, ("proc/1/cgroup", "0::/kubepods.slice/pod1\n"), True),
        ({}, ("proc/1/cgroup", "0::/init.scope\n"), False),
    ],
)
def test_ci_and_containers_are_recognized(
    env: dict[str, str], file: tuple[str, str] | None, expected: bool, tmp_path: Path
) -> None:
    """The environment, files of container engines and the control group of process 1 show CI and containers."""
    if file is not None:
        (tmp_path / file[0]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file[0]).write_text(file[1])

    assert in_ci_or_container(env, tmp_path) is expected
