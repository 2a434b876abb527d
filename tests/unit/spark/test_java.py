"""Finds the Java that Spark will use; scripts print the output of different Javas."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sqlstream.errors import Finding
from sqlstream.spark.jvm.java import JavaRuntime, find_java, java_locale

JAVA_8 = 'java version "1.8.0_392"\nJava(TM) SE Runtime Environment (build 1.8.0_392-b08)'
JAVA_11 = 'openjdk version "11.0.20" 2023-07-18\nOpenJDK Runtime Environment (build 11.0.20+8-Debian)'
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6-Debian-1deb12u1)'
JAVA_21 = 'openjdk version "21" 2023-09-19\nOpenJDK Runtime Environment (build 21+35-2513)'
JAVA_EARLY = 'openjdk version "26-ea" 2026-03-17\nOpenJDK Runtime Environment (build 26-ea+1)'
PICKED_UP = "Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n"


def install(folder: Path, said: str, code: int = 0) -> Path:
    """Creates `folder`/bin/java that prints `said` and exits with `code`, and returns its path."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n[ \"$1\" = -version ] || exit 9\n/bin/cat >&2 <<'END'\n{said}\nEND\nexit {code}\n")
    java.chmod(0o755)
    return java


def refusal(env: dict[str, str]) -> Finding:
    """Returns the finding for an environment without a usable Java."""
    found = find_java(env)
    assert isinstance(found, Finding)
    assert "\n" not in found.message + found.why + found.fix
    return found


@pytest.mark.parametrize(
    ("said", "release", "version"),
    [
        (JAVA_17, 17, "17.0.15"),
        (JAVA_21, 21, "21"),
        (JAVA_EARLY, 26, "26-ea"),
        (PICKED_UP + JAVA_17, 17, "17.0.15"),
    ],
)
def test_a_java_that_spark_can_use(tmp_path: Path, said: str, release: int, version: str) -> None:
    """A usable Java is returned with its path, release and version."""
    java = install(tmp_path, said)

    assert find_java({"JAVA_HOME": str(tmp_path)}) == JavaRuntime(str(java), release, version)


@pytest.mark.parametrize(("said", "version", "release"), [(JAVA_8, "1.8.0_392", 8), (JAVA_11, "11.0.20", 11)])
def test_a_java_that_is_too_old(tmp_path: Path, said: str, version: str, release: int) -> None:
    """For a Java that is too old, the finding names its version and path, and says what to install."""
    java = install(tmp_path, said)

    finding = refusal({"PATH": str(java.parent)})

    assert finding.code == "java-too-old"
    assert version in finding.message
    assert f"{java} is Java {release};" in finding.why
    assert "install Java 17" in finding.fix


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Error: could not find libjava.so\nError: Could not find Java SE", "printed Error: could not find libjava.so"),
        (PICKED_UP + "Unrecognized option: -x", "printed Unrecognized option: -x"),
        ("", "printed nothing"),
    ],
)
def test_a_java_that_does_not_work(tmp_path: Path, said: str, shown: str) -> None:
    """If Java prints no version, the finding quotes the first line that it printed about itself."""
    java = install(tmp_path, said, code=1)

    finding = refusal({"PATH": str(java.parent)})

    assert (finding.code, finding.location) == ("java-missing", None)
    assert finding.why == f"`{java} -version` {shown}"


def test_a_java_that_cannot_be_started(tmp_path: Path) -> None:
    """If `java` is not a program, the finding has the reason of the operating system."""
    java = install(tmp_path, JAVA_17)
    java.write_bytes(b"\x7fELF torn")

    finding = refusal({"JAVA_HOME": str(tmp_path)})

    assert finding.code == "java-missing"
    assert str(java) in finding.why


def test_output_that_is_not_utf8_is_accepted(tmp_path: Path) -> None:
    """A Java whose output is not UTF-8 can still print its version."""
    java = install(tmp_path, JAVA_17)
    java.write_bytes(java.read_bytes().replace(b"Debian", b"D\xe9bian"))

    assert isinstance(find_java({"JAVA_HOME": str(tmp_path)}), JavaRuntime)


@pytest.mark.parametrize("env", [{}, {"PATH": "/nowhere"}, {"PATH": "/nowhere", "JAVA_HOME": ""}])
def test_no_java_at_all(env: dict[str, str]) -> None:
    """An empty JAVA_HOME counts as unset, as in Spark."""
    finding = refusal(env)

    assert finding.code == "java-missing"
    assert "not set" in finding.why
    assert "install Java 17" in finding.fix


def test_a_wrong_java_home_is_not_ignored(tmp_path: Path) -> None:
    """Spark uses JAVA_HOME even if there is a Java on the PATH, so the fix is about JAVA_HOME."""
    java = install(tmp_path / "good", JAVA_17)
    env = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(java.parent)}

    finding = refusal(env)

    assert finding.code == "java-missing"
    assert str(tmp_path / "gone") in finding.why
    assert "JAVA_HOME" in finding.fix


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    """JAVA_HOME has precedence over the PATH, as in Spark."""
    home, path = install(tmp_path / "home", JAVA_21), install(tmp_path / "path", JAVA_17)

    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)})

    assert found == JavaRuntime(str(home), 21, "21")


def test_java_gets_the_given_environment(tmp_path: Path) -> None:
    """Java starts with the given environment, on which the script of a version manager depends."""
    java = install(tmp_path, JAVA_17)
    java.write_text('#!/bin/sh\necho "openjdk version \\"$CHOSEN\\"" >&2\n')

    assert find_java({"JAVA_HOME": str(tmp_path), "CHOSEN": "21.0.1"}) == JavaRuntime(str(java), 21, "21.0.1")


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ('IMPLEMENTOR="Debian"\nJAVA_VERSION="21.0.2"\n', (21, "21.0.2")),
        ('JAVA_VERSION="11.0.20"\n', (17, "17.0.15")),
        ('IMPLEMENTOR="Debian"\n', (17, "17.0.15")),
        (None, (17, "17.0.15")),
    ],
)
def test_the_version_can_be_read_without_starting_java(
    tmp_path: Path, release: str | None, expected: tuple[int, str]
) -> None:
    """The version is in the file `release`, also behind links; if that is unusable, Java is started."""
    java = install(tmp_path / "jdk", JAVA_17)
    if release is not None:
        (tmp_path / "jdk/release").write_text(release)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").symlink_to(java)
    env = {"PATH": str(tmp_path / "bin")}

    assert find_java(env, start=False) == JavaRuntime(str(tmp_path / "bin/java"), *expected)
    assert find_java(env) == JavaRuntime(str(tmp_path / "bin/java"), 17, "17.0.15")


@pytest.mark.parametrize(
    ("variables", "added"),
    [
        ({"LC_ALL": "C.UTF-8"}, {}),
        ({"LANG": "C.UTF-8"}, {}),
        ({"LC_CTYPE": "C.UTF-8"}, {}),
        ({"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}),
        ({}, {"LC_ALL": "C.UTF-8"}),
        ({"LANG": "xx_XX.UTF-8"}, {"LC_ALL": "C.UTF-8"}),
        ({"LANG": "C.UTF-8", "LC_TIME": "xx_XX"}, {"LC_ALL": "C.UTF-8"}),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere file names are always Unicode")
def test_java_gets_a_locale_that_can_name_all_files(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], added: dict[str, str]
) -> None:
    """A locale that is not UTF-8, or does not exist on this machine, is replaced for Java."""
    for name in [name for name in os.environ if name == "LANG" or name.startswith("LC_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert java_locale() == added
