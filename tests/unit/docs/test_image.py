"""The Dockerfile is consistent with the repository; it is checked without building an image."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import click
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from sqlstream.cli.main import cli
from sqlstream.spark.jvm.java import MINIMUM_JAVA
from tests.tools.doc_blocks import ROOT

DOCKERFILE = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
LINES = [line.split(" ", 1) for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = dict(line.split("==") for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines())


def values(instruction: str) -> list[str]:
    """Returns the arguments of each of these instructions."""
    return [value for word, value in LINES if word == instruction]


def copied() -> list[list[str]]:
    """Returns the sources and the destination of each COPY from the repository."""
    return [shlex.split(value) for value in values("COPY") if not value.startswith("--from=")]


def is_sent(name: str) -> bool:
    """Returns whether a file is part of the build context: the last matching line of .dockerignore decides."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and (fnmatch(name, pattern) or name.startswith(f"{pattern}/")):
            sent = line.startswith("!")
    return sent


def test_copied_files_exist_and_are_sent() -> None:
    """Everything that COPY needs exists and is sent, and nothing else of the repository, such as data or history."""
    sources = [source for *names, _ in copied() for source in names]

    assert "requirements.lock" in sources
    assert [name for name in sources if not (ROOT / name).exists() or not is_sent(name)] == []
    assert not is_sent("tests/data/devices")
    assert not is_sent(".git")


def test_python_and_java_versions_match() -> None:
    """Both stages have the Python version of the package and the lock file, and Java is new enough."""
    (image,) = {value.split(" ")[0] for value in values("FROM")}
    python = re.fullmatch(r"python:(\d+\.\d+)-slim-\w+", image)
    java = re.search(r"openjdk-(\d+)-jre-headless", DOCKERFILE)

    assert python is not None
    assert python[1] in SpecifierSet(PROJECT["requires-python"])
    assert f"Programming Language :: Python :: {python[1]}" in PROJECT["classifiers"]
    assert java is not None
    assert int(java[1]) >= MINIMUM_JAVA


def test_every_dependency_is_locked() -> None:
    """Every dependency is locked, because `--constraint` accepts packages that the lock file does not have."""
    locked = {name.lower().replace("_", "-"): version for name, version in LOCK.items()}
    needed = [Requirement(text) for text in PROJECT["dependencies"]]

    assert [str(it) for it in needed if locked.get(it.name.lower(), "0") not in it.specifier] == []
    installs = [value for value in values("RUN") if "pip install" in value]
    assert installs
    assert all("--constraint requirements.lock" in value for value in installs)


def test_the_process_is_not_root_and_gets_signals() -> None:
    """The user is set before the entry point, which runs the package's script under an init and gets its signals."""
    words = [word for word, _ in LINES]

    assert values("USER") == ["sqlstream"]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert values("STOPSIGNAL") == ["SIGTERM"]
    assert json.loads(values("ENTRYPOINT")[0]) == ["tini", "--", "sqlstream"]
    assert "sqlstream" in PROJECT["scripts"]
    assert " tini" in DOCKERFILE
    (command,) = re.findall(r"(?m)^RUN sqlstream (.+)$", DOCKERFILE)
    name, *arguments = shlex.split(command)
    loaded = cli.get_command(click.Context(cli), name)
    assert loaded is not None
    assert loaded.make_context(name, arguments).params["class_archive"] == "build"


def test_the_wheel_is_built_from_the_copied_files(tmp_path: Path) -> None:
    """The image's own build command makes a complete wheel from only the copied files."""
    for *sources, destination in copied():
        for source in sources:
            target = tmp_path / destination / (Path(source).name if destination.endswith("/") else "")
            ignore = shutil.ignore_patterns("__pycache__")
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, target, ignore=ignore)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, target)
    (command,) = [value for value in values("RUN") if value.startswith("pip wheel")]

    subprocess.run([sys.executable, "-m", *shlex.split(command)], cwd=tmp_path, check=True, capture_output=True)

    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "sqlstream").rglob("*") if path.is_file()}
    assert {name for name in wanted if "__pycache__" not in name} <= names
    assert "sqlstream/errors.md" in names
