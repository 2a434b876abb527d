"""`sqlstream status` on the checkpoints of real runs, in folders without a record of these runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, UsageError
from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, Selection
from sqlstream.app.status.status import read_status
from sqlstream.app.stored.local_sources import files_at
from sqlstream.cli.main import main
from sqlstream.spark.storage.locks import file_lock
from sqlstream.state.backfills import Backfill, BackfillLog, HistoryFile, SourceHistory
from sqlstream.state.sources.lag import FileLag, QueryProgress
from sqlstream.state.sources.source_files import FileChoice
from tests.tools.make_checkpoints import FOLDER, ROOT, with_root, write_project, write_rows

CORPORA = sorted(path.name for path in FOLDER.iterdir())


@pytest.fixture(params=CORPORA)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project with the storage of an earlier run, and no record of it. A file of each source was read."""
    with_root(FOLDER / request.param, tmp_path, ROOT, str(tmp_path))
    write_project(tmp_path)
    write_rows(tmp_path, 1)
    return tmp_path


def progress(project: Path, *select: str) -> dict[str, QueryProgress]:
    """Returns the progress of queries by their names."""
    found = read_status(ProjectRequest(project), Selection(select)).progress
    return {query.model: query for query in found}


def test_files_that_arrived_since(project: Path) -> None:
    """Each version has its last commit, its watermark, and for each source the offset and the new files."""
    write_rows(project, 2)
    (project / "in/orders/.hidden.json").write_text("{}")

    pairs = progress(project)["pairs"]

    (version,) = pairs.versions
    position = version.position
    assert (pairs.stored, version.holder, position.version, position.batch) == ((1,), None, 1, 1)
    assert (position.open_batch, position.watermark_ms, position.problem) == (None, 1703988000000, None)
    assert [(source.name, source.position.offset) for source in version.sources] == [
        ("shop.orders", {"logOffset": 0}),
        ("shop.refunds", {"logOffset": 0}),
    ]
    sizes = [(project / f"in/{name}/2.json").stat().st_size for name in ("orders", "refunds")]
    assert [source.lag for source in version.sources] == [FileLag(1, size) for size in sizes]


def test_a_source_without_new_files_has_no_lag(project: Path) -> None:
    """All files were read; a folder that is not on this machine has an unknown lag."""
    assert [source.lag for source in progress(project)["plain"].versions[0].sources] == [FileLag(0, 0)]

    (project / "in").rename(project / "moved")

    assert [source.lag for source in progress(project)["plain"].versions[0].sources] == [None]


def test_a_file_that_is_too_old(project: Path) -> None:
    """A file older than `maxFileAge` is not in the lag, and is counted on its own, until a backfill has written it."""
    old = project / "in/orders/old.json"
    shutil.copy(project / "in/orders/1.json", old)
    os.utime(old, (1_600_000_000, 1_600_000_000))
    (source,) = progress(project)["plain"].versions[0].sources
    assert source.lag == FileLag(0, 0, 1)

    history = SourceHistory("shop.orders", "files", (HistoryFile(f"file://{old}", 1_600_000_000_000),))
    log = BackfillLog((Backfill(1, "2024-01-01T00:00:00Z", None, None, {source.position.key: history}),))
    (project / "store/queries/plain/v1/backfills.json").write_text(log.to_json())

    assert [source.lag for source in progress(project)["plain"].versions[0].sources] == [FileLag(0, 0)]


def test_a_batch_that_was_not_committed(project: Path) -> None:
    """A batch that has begun is shown, and its files were not read."""
    (project / "store/queries/plain/v1/checkpoint/commits/0").unlink()

    (version,) = progress(project)["plain"].versions

    assert (version.position.batch, version.position.open_batch) == (None, 0)
    assert [source.lag for source in version.sources] == [FileLag(1, (project / "in/orders/1.json").stat().st_size)]


def test_the_newest_version_is_current(project: Path) -> None:
    """A full refresh leaves the earlier versions, which are listed."""
    versions = project / "store/queries/plain"
    (versions / "v2").mkdir()
    (versions / "v2/ledger.json").write_text((versions / "v1/ledger.json").read_text())

    plain = progress(project)["plain"]

    assert (plain.stored, [each.position.version for each in plain.versions]) == ((1, 2), [2])
    assert plain.versions[0].position.batch is None


def test_the_process_that_has_locked_a_query(project: Path) -> None:
    """The holder of a query is the process that has locked it, while it does; reading leaves the lock to it."""
    with file_lock(project / "store/queries/plain/v1.lock"):
        for _ in range(2):
            assert str(progress(project, "plain")["plain"].versions[0].holder).startswith(f"process {os.getpid()} on ")
    assert progress(project, "plain")["plain"].versions[0].holder is None


def test_a_query_without_a_checkpoint_is_not_started(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A new query is shown as not started; if there is no other one, there is nothing to read."""
    (project / "models/new.sql").write_text("{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}")

    with pytest.raises(SystemExit) as ended:
        main(("status", "--project-dir", str(project), "-s", "new plain"))

    assert ended.value.code == 0
    assert capsys.readouterr().out.endswith("\n\nnot started: new\n")
    with pytest.raises(UsageError, match="no checkpoint in the storage"):
        progress(project, "new")


def test_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON has the same facts."""
    write_rows(project, 2)

    with pytest.raises(SystemExit):
        main(("status", "--project-dir", str(project), "-s", "hours", "--output", "json"))

    (query,) = json.loads(capsys.readouterr().out)["checkpoints"]
    (version,) = query["versions"]
    (source,) = version["sources"]
    assert (query["model"], query["started"], query["stored_versions"]) == ("hours", True, [1])
    assert (version["watermark"], version["committed_batch"]) == ("2023-12-31T02:00:00+00:00", 1)
    assert (source["source"], source["form"], source["files_read"], source["lag"]["files"]) == (
        "shop.orders",
        "files",
        1,
        1,
    )


def test_no_spark_is_loaded(project: Path, tmp_path: Path) -> None:
    """The command works where there is no Java, and does not load PySpark."""
    bare = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    env = {**bare, "PATH": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[4])}
    command = [sys.executable, "-X", "importtime", "-m", "sqlstream", "status"]

    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 0
    assert "shop.refunds   0 files" in done.stdout
    assert "pyspark" not in done.stderr


def test_remote_storage_starts_spark(project: Path) -> None:
    """If only Spark can read the storage, the command starts it and says why. Without Java, the status of recorded runs
    says that the storage was not read; without a record it fails.
    """
    (project / "project.yml").write_text("name: shop\ntargets: {local: {master: yarn, storage: 'hdfs://a/b'}}\n")
    notices: list[str] = []
    request = ProjectRequest(project, env={"PATH": ""}, notify=notices.append)
    with pytest.raises(FindingsError) as refused:
        read_status(request, Selection(("plain",)))
    (project / "logs").mkdir(exist_ok=True)
    began = {"event": "run_began", "pid": 1, "process_start": "x", "target": "local"}
    (project / "logs/events.jsonl").write_text(
        json.dumps({"time": "2024-01-01T12:00:00.000Z", "invocation_id": "r", **began}) + "\n"
    )

    status = read_status(request)

    assert notices[0] == "Starting Spark to check 1 query, without data, because only Spark can read hdfs://a/b"
    assert [finding.code for finding in refused.value.findings] == ["java-missing"]
    assert status.unread is not None
    assert (status.unread.code, [run.run.invocation_id for run in status.runs]) == ("java-missing", ["r"])
    with pytest.raises(FindingsError):
        read_status(request, check=True)


@pytest.mark.parametrize(
    ("target", "env", "why"),
    [
        ("storage: /streams, spark: {spark.hadoop.fs.defaultFS: 'hdfs://nn'}", {}, "only Spark can read /streams"),
        ("storage: 's3a://b/p'", {"HADOOP_CONF_DIR": "/etc/hadoop"}, "only Spark can read s3a://b/p: HADOOP_CONF_DIR"),
        (
            "storage: 's3a://b/p', spark: {spark.hadoop.fs.s3a.secret.key: \"{{ env_var('SQLSTREAM_SECRET_K') }}\"}",
            {},
            "`SQLSTREAM_SECRET_K` is not set",
        ),
        ("storage: store", {}, "only Spark can read hdfs://a/q"),
    ],
)
def test_storage_that_only_spark_knows_says_why(project: Path, target: str, env: dict[str, str], why: str) -> None:
    """Paths without a scheme may be on HDFS, the settings of S3 may be elsewhere, and so may one checkpoint."""
    (project / "project.yml").write_text(f"name: shop\ntargets: {{local: {{{target}}}}}\n")
    elsewhere = "{{ config(sink='lake', checkpoint='hdfs://a/q') }} select id from {{ source('shop', 'orders') }}"
    (project / "models/elsewhere.sql").write_text(elsewhere)
    notices: list[str] = []
    request = ProjectRequest(project, env={"PATH": "", **env}, notify=notices.append)

    with pytest.raises(FindingsError) as refused:
        read_status(request, Selection(("elsewhere",)))

    assert why in notices[0]
    assert [finding.code for finding in refused.value.findings] == ["java-missing"]


def test_only_the_selected_checkpoints_count(project: Path) -> None:
    """`plan` starts Spark for a checkpoint on HDFS, and not for other queries."""
    elsewhere = "{{ config(sink='lake', checkpoint='hdfs://a/q') }} select id from {{ source('shop', 'orders') }}"
    (project / "models/elsewhere.sql").write_text(elsewhere)
    request = ProjectRequest(project, env={"PATH": ""})

    with pytest.raises(FindingsError) as refused:
        plan_project(PlanRequest(request))
    others = plan_project(PlanRequest(request, Selection(exclude=("elsewhere",))))

    assert [finding.code for finding in refused.value.findings] == ["java-missing"]
    assert others.spark_version is None
    assert {query.model for query in others.queries} >= {"plain", "pairs"}


def test_files_of_a_pattern_and_of_an_output(tmp_path: Path) -> None:
    """A pattern names folders and files. In the output of a file sink, only committed files count."""
    for name in ("a/1.json", "b/2.json", "c.json", "_d/3.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert [file.name for file in files_at(f"{tmp_path}/[ac]*", FileChoice(), tmp_path) or ()] == [
        f"{tmp_path}/a/1.json",
        f"{tmp_path}/c.json",
    ]
    assert files_at(f"{tmp_path}/nothing", FileChoice(), tmp_path) is None
    assert files_at(f"{tmp_path}/nothing/*.json", FileChoice(), tmp_path) == ()

    output = tmp_path / "a"
    (output / "_spark_metadata").mkdir()
    logged = {"path": f"file://{output}/1.json", "size": 2, "action": "add", "modificationTime": 1}
    (output / "_spark_metadata/0").write_text(f"v1\n{json.dumps(logged)}")
    (output / "leftover.json").write_text("{}")

    assert [file.name for file in files_at(str(output), FileChoice(), tmp_path) or ()] == [f"{output}/1.json"]
    (output / "_spark_metadata/0").write_text('v1\n{"pa')
    assert files_at(str(output), FileChoice(), tmp_path) is None


def test_files_below_names_that_look_like_patterns(tmp_path: Path) -> None:
    """The project's folder is no part of a pattern, and what exists under the very name is no pattern."""
    project = tmp_path / "depot [v2]*"
    for name in ("in/a[1].json", "in/*", "in [x]/b.json", "in x/c.json"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("{}")

    def names(path: str) -> list[str] | None:
        found = files_at(f"{project}/{path}", FileChoice(), project)
        return None if found is None else [file.name.removeprefix(f"{project}/") for file in found]

    assert names("in") == names("in/*") == ["in/*", "in/a[1].json"]
    assert names("in/a[1].json") == ["in/a[1].json"]
    assert names("in [x]") == ["in [x]/b.json"]
    assert names("in[ ]x") == ["in x/c.json"]
    assert names("nothing") is None
