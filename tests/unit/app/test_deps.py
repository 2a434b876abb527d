"""`sqlstream deps`: which jars it fetches, and what it writes to connectors.lock."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstream.app.deps import FetchedJars, NoProgress, fetch_connectors
from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.project_jars import session_connectors, spark_minor
from sqlstream.app.stored.stored_query import open_query
from sqlstream.errors import FindingsError
from sqlstream.project.connectors.connectors import Jar
from sqlstream.project.connectors.lock import LOCK_FILE, ConnectorsLock, lock_text, read_lock
from sqlstream.spark.jvm.session import NO_CONNECTORS, spark_settings
from sqlstream.spark.secrets import Secrets

CONTENT = b"a driver"
JAR = Jar("org.postgresql:postgresql:1.0", hashlib.sha256(CONTENT).hexdigest())
SOURCES = """\
sources:
  - name: db
    tables:
      - {name: orders, format: jdbc, mode: batch, options: {url: "jdbc:postgresql://localhost/x", dbtable: orders}}
"""


@pytest.fixture
def request_(tmp_path: Path) -> ProjectRequest:
    """A project that reads PostgreSQL, whose only repository is a folder with an empty cache beside it."""
    root = tmp_path / "project"
    (root / "models").mkdir(parents=True)
    (tmp_path / "jars").mkdir()
    (root / "project.yml").write_text(
        f"name: p\ntargets: {{local: {{repositories: [{{url: {tmp_path / 'jars'}}}]}}}}\nrules: {{unwritten-model: off}}\n"
    )
    (root / "sources.yml").write_text(SOURCES)
    (root / "models/orders.sql").write_text("select * from {{ source('db', 'orders') }}")
    return ProjectRequest(root, env={"HOME": str(tmp_path / "home")})


def deps(request: ProjectRequest, *, upgrade: bool = False) -> FetchedJars:
    """Runs the command without progress bars."""
    return fetch_connectors(request, NoProgress(), upgrade=upgrade)


def write_lock(request: ProjectRequest, *jars: Jar, name: str = "postgresql") -> None:
    """Writes a lock with these jars for a connector or a package."""
    (request.folder / LOCK_FILE).write_text(lock_text(ConnectorsLock({spark_minor(): {name: jars}})))


def test_the_jars_of_the_lock_are_used(request_: ProjectRequest, tmp_path: Path) -> None:
    """A locked jar replaces the one in the table of connectors, and the lock stays as it is."""
    write_lock(request_, JAR)
    (tmp_path / "jars" / JAR.name).write_bytes(CONTENT)

    fetched = deps(request_)

    (connector,) = fetched.connectors
    assert (connector.jars, connector.downloaded, fetched.written) == ((JAR.coordinate,), 1, None)
    assert deps(request_).connectors[0].downloaded == 0


def test_a_session_gets_the_paths_of_the_jars_and_says_what_it_downloads(
    request_: ProjectRequest, tmp_path: Path
) -> None:
    """The first session downloads, the next one is silent; a damaged jar in the cache is downloaded again."""
    write_lock(request_, JAR)
    (tmp_path / "jars" / JAR.name).write_bytes(CONTENT)
    said: list[str] = []

    def start() -> tuple[str, ...]:
        return session_connectors(load_for_reading(request_), Secrets({}), request_.env, said.append).jars

    (path,) = start()
    assert Path(path).read_bytes() == CONTENT
    assert start() == (path,)
    Path(path).write_bytes(b"damaged")
    assert start() == (path,)

    assert said == ["Downloading 1 jar for `postgresql`"] * 2
    assert Path(path).read_bytes() == CONTENT


def test_a_session_needs_only_the_connectors_of_its_models(request_: ProjectRequest) -> None:
    """A jar that cannot be fetched does not stop models that do not read its source."""
    (request_.folder / "models/numbers.sql").write_text("select 1 as one")
    loaded = load_for_reading(request_)

    assert session_connectors(loaded, Secrets({}), request_.env, lambda _: None, ["model.p.numbers"]) == NO_CONNECTORS
    with pytest.raises(FindingsError):
        session_connectors(loaded, Secrets({}), request_.env, lambda _: None, ["model.p.orders"])


@pytest.mark.parametrize(
    ("written", "extensions", "catalog"),
    [
        ("", "io.delta.sql.DeltaSparkSessionExtension", "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
        ("spark.sql.extensions: own.A", "own.A,io.delta.sql.DeltaSparkSessionExtension", None),
        ("spark.sql.extensions: 'io.delta.sql.DeltaSparkSessionExtension, own.A'", None, None),
        ("spark.sql.catalog.spark_catalog: own.Catalog", "io.delta.sql.DeltaSparkSessionExtension", "own.Catalog"),
    ],
)
def test_a_session_gets_the_settings_of_delta_beside_those_of_the_user(
    request_: ProjectRequest, written: str, extensions: str | None, catalog: str | None
) -> None:
    """The user's settings stay: sqlstream only adds an extension that is missing. A local session has few partitions."""
    (request_.folder / "project.yml").write_text(
        "name: p\ntargets: {local: {master: 'local[3]', packages: ['io.delta:delta-spark_4.3_2.13:9'], "
        f"spark: {{spark.jars.ivySettings: none, {written}}}}}}}\nrules: {{unwritten-model: off}}\n"
    )
    (request_.folder / "sources.yml").write_text(
        "sources: [{name: db, tables: [{name: orders, format: delta, path: in}]}]"
    )
    loaded = load_for_reading(request_)

    connectors = session_connectors(loaded, Secrets({}), request_.env, lambda _: None)
    settings = spark_settings(loaded.compiled.project.target, "app", "warehouse", connectors)

    assert settings["spark.sql.extensions"] == (extensions or "io.delta.sql.DeltaSparkSessionExtension,own.A")
    assert settings["spark.sql.catalog.spark_catalog"] == (catalog or "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    assert settings["spark.databricks.delta.snapshotPartitions"] == "3"


def test_a_jar_that_cannot_be_fetched_is_one_finding(request_: ProjectRequest, tmp_path: Path) -> None:
    """The finding is at the format of the source, and names the repository; no lock is written."""
    with pytest.raises(FindingsError) as refused:
        deps(request_)

    (finding,) = refused.value.findings
    assert finding.code == "connector-jars"
    assert str(finding.location) == "sources.yml:4:32"
    assert str(tmp_path / "jars") in finding.why
    assert not (request_.folder / LOCK_FILE).exists()


def test_upgrade_ignores_the_lock(request_: ProjectRequest) -> None:
    """With `--upgrade` the table of connectors decides again, and the repository lacks its jar."""
    write_lock(request_, JAR)

    with pytest.raises(FindingsError) as refused:
        deps(request_, upgrade=True)

    assert JAR.coordinate not in refused.value.findings[0].why


def test_a_target_can_bring_its_own_driver(request_: ProjectRequest) -> None:
    """A jar in `spark.jars` replaces the connector."""
    (request_.folder / "project.yml").write_text(
        "name: p\ntargets: {local: {spark: {spark.jars: /opt/postgresql-42.jar}}}\n"
    )

    assert deps(request_).connectors == ()


def test_a_broken_lock_stops_a_session(request_: ProjectRequest) -> None:
    """A lock with conflict markers is a finding, and nothing is downloaded instead."""
    (request_.folder / LOCK_FILE).write_text("version: 3\n")

    with pytest.raises(FindingsError) as refused:
        session_connectors(load_for_reading(request_), Secrets({}), request_.env, lambda _: None)

    assert [finding.code for finding in refused.value.findings] == ["connector-lock"]


def test_commands_on_stored_files_use_the_packages_of_the_target(request_: ProjectRequest) -> None:
    """A storage whose file system is in a package cannot be opened without it."""
    (request_.folder / "project.yml").write_text(
        "name: p\nrules: {unwritten-model: off}\ntargets: {local: {storage: 'abfss://c@a/p', packages: ['g:a:1'], "
        f"repositories: [{{url: {request_.folder.parent / 'jars'}}}]}}}}\n"
    )
    write_lock(request_, Jar("g:a:1", JAR.sha256), name="g:a:1")
    (request_.folder / "sinks.yml").write_text("sinks: [{name: lake, format: parquet, path: out}]\n")
    (request_.folder / "models/made.sql").write_text("{{ config(sink='lake') }} select 1 as id")
    home = request_.folder.parent / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin/java").touch(0o755)
    (home / "release").write_text('JAVA_VERSION="21.0.2"\n')
    request = replace(request_, env={**request_.env, "JAVA_HOME": str(home)})

    with pytest.raises(FindingsError) as refused, open_query(load_for_reading(request), request, "made"):
        pass

    assert [finding.code for finding in refused.value.findings] == ["connector-jars"]


def test_the_secret_of_a_repository_must_be_set(request_: ProjectRequest) -> None:
    """A missing secret is reported before a repository is asked."""
    (request_.folder / "project.yml").write_text(
        "name: p\ntargets:\n  local:\n    repositories:\n"
        "      - {url: http://127.0.0.1:1, password: \"{{ env_var('SQLSTREAM_SECRET_MAVEN') }}\"}\n"
    )

    with pytest.raises(FindingsError) as refused:
        deps(request_)

    assert [finding.code for finding in refused.value.findings] == ["missing-env-var"]


def test_the_written_lock_has_the_fetched_jars(request_: ProjectRequest, tmp_path: Path) -> None:
    """Reading it back gives the same jars."""
    write_lock(request_, JAR)
    text = (request_.folder / LOCK_FILE).read_text()
    (tmp_path / "jars" / JAR.name).write_bytes(CONTENT)

    deps(request_)

    assert read_lock((request_.folder / LOCK_FILE).read_text()) == read_lock(text)
