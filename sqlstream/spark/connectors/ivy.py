"""Resolves Maven packages and everything that they depend on, with the Ivy in Spark's own jars.

Spark resolves `spark.jars.packages` with the same library, but at each start and without checksums.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pyspark

from sqlstream.project.connectors.table import Jar
from sqlstream.spark.connectors.repositories import Repository
from sqlstream.spark.jvm.java import java_path

TIMEOUT_SECONDS = 1800.0
"""Time for resolving all packages; a slow network may take minutes for a large one."""

_OF_SPARK = (
    *("core_", "catalyst_", "common-utils_", "connect_", "graphx_", "hive_", "kvstore_", "launcher_", "mllib_"),
    *("mllib-local_", "network-common_", "network-shuffle_", "pipelines_", "repl_", "sketch_", "sql_", "sql-api_"),
    *("streaming_", "tags_", "unsafe_", "variant_", "yarn_", "kubernetes_"),
)
"""The artifacts of Spark that are in every Spark, so that no package can bring another version of them."""

_FILE = "[organisation]~[artifact]~[revision](~[classifier]).[ext]"


class NotResolvedError(Exception):
    """Ivy could not resolve the packages. The message is what Ivy printed about it."""


def resolve_packages(
    packages: Sequence[str], folder: Path, repositories: Sequence[Repository], env: Mapping[str, str]
) -> tuple[Jar, ...]:
    """Returns the jars of `packages` (`group:artifact:version`) and of everything that they need, without Spark's own.

    The files are below `folder` in Maven's layout. Raises: NotResolvedError.
    """
    java = java_path(env)
    if java is None:
        raise NotResolvedError("Ivy needs Java, and there is none")
    with tempfile.TemporaryDirectory(prefix="sqlstream-ivy-") as made:
        work = Path(made)
        (work / "ivysettings.xml").write_text(_settings(repositories, folder / "ivy"), encoding="utf-8")
        (work / "ivy.xml").write_text(_dependencies(packages), encoding="utf-8")
        command = [java, "-jar", str(_ivy_jar()), "-settings", str(work / "ivysettings.xml")]
        command += ["-ivy", str(work / "ivy.xml"), "-confs", "default", "-types", "jar", "bundle"]
        command += ["-retrieve", f"{work}/jars/{_FILE}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)  # noqa: S603
        if done.returncode != 0:
            raise NotResolvedError(_problem(done.stdout + done.stderr))
        return tuple(sorted(_keep(file, folder) for file in (work / "jars").iterdir()))


def _ivy_jar() -> Path:
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise NotResolvedError("the installed PySpark contains no Ivy")
    return jars[-1]


def _dependencies(packages: Sequence[str]) -> str:
    lines = []
    for package in packages:
        group, artifact, version = package.split(":")
        names = f"org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)}"
        lines.append(f'<dependency {names} force="true" conf="default->master,runtime(*)"/>')
    lines += [f'<exclude org="org.apache.spark" module="spark-{name}*"/>' for name in _OF_SPARK]
    lines.append('<exclude org="org.scala-lang" module="scala-library"/>')
    info = '<info organisation="sqlstream" module="packages"/><configurations><conf name="default"/></configurations>'
    return f'<ivy-module version="2.0">{info}<dependencies>{"".join(lines)}</dependencies></ivy-module>'


def _settings(repositories: Sequence[Repository], cache: Path) -> str:
    credentials, resolvers = [], []
    for number, repository in enumerate(repositories):
        if repository.is_folder:
            root = Path(repository.url).expanduser().resolve()
            pattern = f"{root}/[organisation]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]"
            parts = f"<ivy pattern={quoteattr(pattern)}/><artifact pattern={quoteattr(pattern)}/>"
            resolvers.append(f'<filesystem name="r{number}" m2compatible="true">{parts}</filesystem>')
            continue
        resolvers.append(f'<ibiblio name="r{number}" m2compatible="true" root={quoteattr(repository.url)}/>')
        if repository.username or repository.password:
            host = repository.shown.partition("://")[2].partition("/")[0].partition(":")[0]
            user, password = quoteattr(repository.username), quoteattr(repository.password)
            credentials.append(f"<credentials host={quoteattr(host)} username={user} passwd={password}/>")
    chain = f'<chain name="all">{"".join(resolvers)}</chain>'
    caches = f"<caches defaultCacheDir={quoteattr(str(cache))}/>"
    return (
        f'<ivysettings><settings defaultResolver="all"/>{caches}{"".join(credentials)}'
        f"<resolvers>{chain}</resolvers></ivysettings>"
    )


def _keep(file: Path, folder: Path) -> Jar:
    """Moves a retrieved file to its place in Maven's layout."""
    group, artifact, version = file.stem.split("~")[:3]
    with file.open("rb") as content:
        jar = Jar(f"{group}:{artifact}:{version}", hashlib.file_digest(content, "sha256").hexdigest())
    path = folder / jar.path
    path.parent.mkdir(parents=True, exist_ok=True)
    file.replace(path) if file.stat().st_dev == path.parent.stat().st_dev else path.write_bytes(file.read_bytes())
    return jar


def _problem(output: str) -> str:
    """Returns the lines in which Ivy names what it did not find."""
    lines = [line.strip(" \t:") for line in output.splitlines()]
    named = [line for line in lines if line.endswith(": not found") or "UNRESOLVED" in line or "Exception" in line]
    return "; ".join(dict.fromkeys(named)) or (lines[-1] if lines else "Ivy failed without a message")
