"""The jars of a project's connectors and packages: pinned by connectors.lock, in the user's cache, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from sqlstream.app.loading.load import Loaded
from sqlstream.compiler.connectors import needed_connectors, used_connectors
from sqlstream.compiler.spark_versions import installed_spark, minor_version_text
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.location import Location
from sqlstream.numbers import plural
from sqlstream.project.configuration.target import Target
from sqlstream.project.connectors.connectors import CONNECTORS, EXTENSIONS, FILE_SYSTEMS, Jar, jars_of
from sqlstream.project.connectors.lock import LOCK_FILE, ConnectorsLock, read_lock
from sqlstream.project.databases.jdbc_options import DRIVER_CLASSES
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.spark.jvm.class_archive import cache_folder
from sqlstream.spark.jvm.connect import has_delta_sql, has_driver, has_format
from sqlstream.spark.jvm.jars import (
    FILES_JAR,
    NotFetchedError,
    NotResolvedError,
    Progress,
    Repository,
    fetch_jar,
    has_checksum,
    resolve_packages,
)
from sqlstream.spark.jvm.session import SessionConnectors
from sqlstream.spark.secrets import Secrets

DELTA_SQL = CONNECTORS["delta"].settings[EXTENSIONS]
"""The extension of Spark with Delta Lake's MERGE."""

DOWNLOADS = 4
"""The number of jars that are downloaded at the same time."""


@dataclass(frozen=True)
class ResolvedJars:
    """The jars of one connector, or of a target's packages joined by spaces.

    `stands_in` is the version of a release for an earlier Spark, empty for one for the installed Spark. `location` is
    the declaration that needs it.
    """

    name: str
    jars: tuple[Jar, ...]
    location: Location
    stands_in: str = ""


@dataclass(frozen=True)
class JarStore:
    """The folder of the jars, and the repositories to fetch missing ones from."""

    folder: Path
    repositories: Sequence[Repository]

    def missing(self, resolved: Sequence[ResolvedJars]) -> list[tuple[Jar, ResolvedJars]]:
        """Returns the jars that are not in the folder, or are damaged."""
        return [
            (jar, each)
            for each in resolved
            for jar in each.jars
            if not has_checksum(self.folder / jar.path, jar.sha256)
        ]

    def fetch(self, missing: Sequence[tuple[Jar, ResolvedJars]], progress: Progress) -> None:
        """Downloads jars, several at a time. Raises: FindingsError with one finding for each connector that fails."""

        def fetch(item: tuple[Jar, ResolvedJars]) -> Finding | None:
            jar, resolved = item
            try:
                fetch_jar(jar, self.folder, self.repositories, progress)
            except NotFetchedError as error:
                return _not_fetched(resolved, error)
            return None

        with ThreadPoolExecutor(DOWNLOADS) as threads:
            findings = [finding for finding in threads.map(fetch, missing) if finding is not None]
        if findings:
            raise FindingsError({finding.message: finding for finding in findings}.values())


def jar_store(target: Target, secrets: Secrets, env: Mapping[str, str]) -> JarStore:
    """Returns the user's cache of jars with the target's repositories. Raises: FindingsError for a missing secret."""
    values = {str(index): value for index, each in enumerate(target.repositories) for value in each.values()}
    missing = secrets.missing(values, target.location)
    if missing:
        raise FindingsError(missing)
    repositories = [
        Repository(secrets.resolve(each.url), secrets.resolve(each.username), secrets.resolve(each.password))
        for each in target.repositories
    ]
    folder = cache_folder(env)
    if folder is None:
        raise UsageError("there is no home folder for the cache of jars; set XDG_CACHE_HOME to a folder")
    return JarStore(folder / "jars", repositories or [Repository()])


def resolve_jars(
    loaded: Loaded,
    store: JarStore,
    lock: ConnectorsLock,
    env: Mapping[str, str],
    models: Sequence[str] | None = None,
) -> list[ResolvedJars]:
    """Returns the jars of each connector that `models` (unique ids; default: all) need, and of the target's packages.

    Uses the lock for what it has. Leaves out connectors without a release for the installed Spark, which `compile`
    reports. Resolves packages that are not in the lock with Ivy. Raises: FindingsError.
    """
    spark = spark_minor()
    found = []
    for name, needed in needed_connectors(loaded.compiled, models).items():
        release = needed.connector.release_for(spark)
        if release is not None:
            jars = lock.find(spark, name) or jars_of(release)
            found.append(ResolvedJars(name, jars, needed.location, release.stands_in))
    target = loaded.compiled.project.target
    if target.packages and not target.resolves_in_spark:
        name = " ".join(target.packages)
        found.append(ResolvedJars(name, lock.find(spark, name) or _resolved(target, store, env), target.location))
    return found


def session_connectors(
    loaded: Loaded,
    secrets: Secrets,
    env: Mapping[str, str],
    notify: Callable[[str], None],
    models: Sequence[str] | None = None,
    *,
    fetches: bool = True,
) -> SessionConnectors:
    """Returns what a session for `models` (unique ids, also of sources; default: all models) needs.

    Downloads the jars that are missing. Without `fetches`, its JVM has them already. Those that a Spark Connect server
    must have are left out, see `check_server`. Raises: FindingsError.
    """
    used = [needed.connector for needed in used_connectors(loaded.compiled, models).values()]
    extensions = [each.settings[EXTENSIONS] for each in used if EXTENSIONS in each.settings]
    settings = {name: value for each in used for name, value in each.settings.items()}
    is_remote = loaded.compiled.project.target.remote is not None
    has_store = not is_remote and any(each.name in FILE_SYSTEMS.values() for each in used)
    own = (str(FILES_JAR),) if has_store else ()
    return SessionConnectors(
        (*_fetched_jars(loaded, secrets, env, notify, models), *own) if fetches else (),
        settings | ({EXTENSIONS: ",".join(extensions)} if extensions else {}),
        tuple(name for each in used for name in each.per_core),
    )


def _fetched_jars(
    loaded: Loaded,
    secrets: Secrets,
    env: Mapping[str, str],
    notify: Callable[[str], None],
    models: Sequence[str] | None,
) -> tuple[str, ...]:
    """Returns the paths of the jars, after the download of those that are missing. Raises: FindingsError."""
    project = loaded.compiled.project
    if not project.target.packages and not needed_connectors(loaded.compiled, models):
        return ()
    store = jar_store(project.target, secrets, env)
    resolved = resolve_jars(loaded, store, project_lock(project.root), env, models)
    if project.target.remote is not None:
        resolved = [each for each in resolved if each.name not in CONNECTORS or not CONNECTORS[each.name].loads_once]
    missing = store.missing(resolved)
    if missing:
        names = quoted_list(tuple(dict.fromkeys(each.name for _, each in missing)))
        notify(f"Downloading {plural(len(missing), 'jar')} for {names}")
        store.fetch(missing, lambda *_: None)
    return tuple(dict.fromkeys(str(store.folder / jar.path) for each in resolved for jar in each.jars))


def check_server(loaded: Loaded, session: SparkSession, models: Sequence[str] | None) -> None:
    """Checks that a Spark Connect server has the connectors that it must have, and the extension of Delta Lake for rows
    that replace others. Raises: FindingsError, Spark's errors.
    """
    findings = []
    for name, needed in used_connectors(loaded.compiled, models).items():
        release = needed.connector.release_for(minor_version_text(session.version))
        if needed.connector.loads_once and name not in FILE_SYSTEMS.values() and not _is_on_server(session, name):
            is_driver = name in DRIVER_CLASSES
            what = f"the JDBC driver of {needed.connector.title}" if is_driver else needed.connector.title
            package = f" --packages {release.jars[0]}" if release is not None else " with its jars"
            if name == "delta":  # Iceberg needs its extension for nothing that runs there
                package += f" --conf {EXTENSIONS}={DELTA_SQL}"
            findings.append(
                Finding(
                    "spark-start",
                    f"the server of target `{loaded.compiled.project.target.name}` has no connector for `{name}`",
                    f"sessions of Spark Connect cannot add {what} to a server that has started",
                    f"start the server with it: start-connect-server.sh{package}",
                    needed.location,
                )
            )
    merging = None if findings else _merged_delta_table(loaded, models)
    if merging is not None and not has_delta_sql(session):
        target = loaded.compiled.project.target
        findings.append(
            Finding(
                "spark-start",
                f"the server of target `{target.name}` cannot merge rows into a table of Delta Lake",
                f"it was started without {DELTA_SQL}, and sessions of Spark Connect cannot add it",
                f"start the server with it: start-connect-server.sh --conf {EXTENSIONS}={DELTA_SQL}",
                merging,
            )
        )
    if findings:
        raise FindingsError(findings)


def _merged_delta_table(loaded: Loaded, models: Sequence[str] | None) -> Location | None:
    """Returns where the first model says that its rows replace others in a table of Delta Lake, None without one."""
    compiled = loaded.compiled
    for model in compiled.models.values():
        is_chosen = models is None or model.unique_id in models
        merges = is_chosen and model.streaming and model.config.merges_rows
        if merges and any(output.format == "delta" for output in compiled.outputs_of(model)):
            return model.location_of("unique_key")
    return None


def _is_on_server(session: SparkSession, connector: str) -> bool:
    driver = DRIVER_CLASSES.get(connector)
    return has_format(session, connector) if driver is None else has_driver(session, driver)


def project_lock(root: Path) -> ConnectorsLock:
    """Returns the project's connectors.lock, empty if it has none. Raises: FindingsError."""
    files = ProjectFiles(root)
    return read_lock(files.read_text(LOCK_FILE)) if files.exists(LOCK_FILE) else ConnectorsLock()


def spark_minor() -> str:
    """Returns the minor version of the installed Spark, such as `4.3`."""
    return minor_version_text(installed_spark())


def _resolved(target: Target, store: JarStore, env: Mapping[str, str]) -> tuple[Jar, ...]:
    try:
        return resolve_packages(target.packages, store.folder, store.repositories, env)
    except NotResolvedError as error:
        raise FindingsError(
            [
                Finding(
                    "connector-jars",
                    f"the packages of target `{target.name}` cannot be resolved",
                    str(error),
                    "fix `packages` of the target, or the network, or set `repositories` to a mirror",
                    target.location,
                )
            ]
        ) from error


def _not_fetched(resolved: ResolvedJars, error: NotFetchedError) -> Finding:
    return Finding(
        "connector-jars",
        f"the jars of {quoted(resolved.name)} cannot be fetched",
        str(error),
        "run `sqlstream deps` with access to the network, or set `repositories` of the target to a mirror or a folder",
        resolved.location,
    )
