"""The jars of connectors: downloaded from Maven repositories or copied from a folder, and the packages that a package
needs, resolved with the Ivy in Spark's own jars.

Spark resolves `spark.jars.packages` with the same library, but at each start and without checksums.
"""

from __future__ import annotations

import base64
import hashlib
import os
import ssl
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import quoteattr

import pyspark

from sqlstream.project.connectors.connectors import Jar
from sqlstream.spark.jvm.java import java_path

MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
"""The public repository that Maven and Spark use by default (https://central.sonatype.org/)."""

FILES_JAR = Path(__file__).with_name("sqlstream-files.jar")
"""The jar with `LocalFiles.java` and `ObjectStoreFiles.java`."""

TIMEOUT_SECONDS = 30.0
"""How long a repository can send nothing."""

_CHUNK = 1 << 16

Progress = Callable[[str, int, int], None]
"""Called during a download with the name of the jar, the bytes so far, and all bytes (0 if unknown)."""

RESOLVE_SECONDS = 1800.0
"""Time for resolving all packages; a slow network may take minutes for a large one."""


@dataclass(frozen=True)
class Repository:
    """A Maven repository: an http(s) URL, or a folder with jars in Maven's layout or without folders."""

    url: str = MAVEN_CENTRAL
    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def is_folder(self) -> bool:
        """Whether the repository is a folder on this machine."""
        return "://" not in self.url

    @property
    def shown(self) -> str:
        """The address without a user or password in it."""
        scheme, mark, rest = self.url.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}" if mark else self.url


class NotFetchedError(Exception):
    """No repository has the jar. `reasons` has one text for each repository that was asked."""

    def __init__(self, jar: Jar, reasons: Sequence[str]) -> None:
        super().__init__(f"{jar.coordinate}: {'; '.join(reasons)}")
        self.jar = jar
        self.reasons = tuple(reasons)


def fetch_jar(jar: Jar, folder: Path, repositories: Sequence[Repository], progress: Progress) -> Path:
    """Returns the path of the jar below `folder`, in Maven's layout, after a download if it is missing or damaged.

    A file appears under its name only if its checksum is right, so several processes can fetch the same jar at the
    same time. Raises: NotFetchedError.
    """
    path = folder / jar.path
    if has_checksum(path, jar.sha256):
        return path
    reasons = []
    for repository in repositories:
        try:
            _fetch_from(repository, jar, path, progress)
        except (OSError, _WrongChecksumError) as error:
            reasons.append(f"{repository.shown}: {_reason(error)}")
        else:
            return path
    raise NotFetchedError(jar, reasons)


def has_checksum(path: Path, sha256: str) -> bool:
    """Returns whether the file exists and has the checksum."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False


class _WrongChecksumError(Exception):
    pass


def _fetch_from(repository: Repository, jar: Jar, path: Path, progress: Progress) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with _opened(repository, jar) as (source, size), aside.open("wb") as file:
            _copy(source, file, jar, lambda done: progress(jar.name, done, size))
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _opened(repository: Repository, jar: Jar) -> Iterator[tuple[BinaryIO, int]]:
    """Yields the bytes of the jar, and their number, 0 if unknown. Raises: OSError."""
    if repository.is_folder:
        root = Path(repository.url).expanduser()
        file = next((each for each in (root / jar.path, root / jar.name) if each.is_file()), root / jar.path)
        with file.open("rb") as source:
            yield source, file.stat().st_size
        return
    request = urllib.request.Request(f"{repository.url.rstrip('/')}/{jar.path}")  # noqa: S310 - the user's own address
    if repository.username or repository.password:
        pair = base64.b64encode(f"{repository.username}:{repository.password}".encode()).decode()
        # unredirected: a server to which the repository redirects does not get the login
        request.add_unredirected_header("Authorization", f"Basic {pair}")
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
        yield response, int(response.headers.get("Content-Length") or 0)


def _copy(source: BinaryIO, target: BinaryIO, jar: Jar, on_bytes: Callable[[int], None]) -> None:
    """Raises: OSError, _WrongChecksumError."""
    digest, done = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK):
        target.write(chunk)
        digest.update(chunk)
        done += len(chunk)
        on_bytes(done)
    if digest.hexdigest() != jar.sha256:
        raise _WrongChecksumError(f"the SHA-256 of {jar.name} is {digest.hexdigest()}, expected {jar.sha256}")


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError) and not isinstance(error.reason, str):
        cause = error.reason
        return str(cause) if isinstance(cause, ssl.SSLError) else (getattr(cause, "strerror", None) or str(cause))
    return getattr(error, "strerror", None) or str(error)


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
        # `bundle` is Maven's type of jars for OSGi
        command += ["-ivy", str(work / "ivy.xml"), "-confs", "default", "-types", "jar", "bundle"]
        command += ["-retrieve", f"{work}/jars/{_FILE}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_SECONDS, check=False)  # noqa: S603
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
        # `force`: this version, also if another package needs a later one
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
    # a rename cannot leave the file system of the temporary folder
    file.replace(path) if file.stat().st_dev == path.parent.stat().st_dev else path.write_bytes(file.read_bytes())
    return jar


def _problem(output: str) -> str:
    """Returns the lines in which Ivy names what it did not find."""
    lines = [line.strip(" \t:") for line in output.splitlines()]
    named = [line for line in lines if line.endswith(": not found") or "UNRESOLVED" in line or "Exception" in line]
    return "; ".join(dict.fromkeys(named)) or (lines[-1] if lines else "Ivy failed without a message")
