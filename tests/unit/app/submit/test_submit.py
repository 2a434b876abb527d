"""`sqlstream submit` before Spark: what it refuses, which command it starts, and where secrets are."""

from __future__ import annotations

import json
import os
import signal
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstream.app.request import MEMORY_ROWS, ProjectRequest, RunRequest, Selection
from sqlstream.app.session.start_driver import ENVIRONMENT
from sqlstream.app.submit import submit
from sqlstream.app.submit.submit import Submission, prepare, spark_submit_arguments
from sqlstream.cli.main import main
from sqlstream.errors import FindingsError, UsageError
from sqlstream.state.runs.limits import RunLimits
from sqlstream.state.runs.shards import Shard
from tests.support.compiling import write_files

SECRET = "tulip-4711"
ENV = {
    "PATH": "/usr/bin",
    "DAYS": "7",
    "UNUSED": "1",
    "KIND_EU": "eu",
    "SQLSTREAM_SECRET_DB": SECRET,
    "SQLSTREAM_SECRET_OTHER": "4711-tulip",
    "HADOOP_CONF_DIR": "/etc/hadoop",
}
MODEL = """{{ config(sink='lake', output_mode='append') }}
select id, '{{ env_var('DAYS') }}' as days, '{{ env_var('KIND_' ~ var('region')) }}' as kind from {{ source('shop', 'orders') }}
"""
KUBERNETES = {"master": "k8s://https://kubernetes.default.svc", "storage": "gs://bucket/shop"}
UPLOADS = {
    "spark.kubernetes.file.upload.path": "gs://bucket/uploads",
    "spark.kubernetes.container.image": "shop:1",
}


def project(folder: Path, orders: str = "hdfs:///orders", **target: Any) -> RunRequest:
    """Writes a project with one target, and returns a run of it."""
    settings = {**({} if "remote" in target else {"master": "yarn"}), "storage": "hdfs:///shop", **target}
    table = {"name": "orders", "format": "json", "path": orders, "schema": "id int"}
    options = {"compression": "{{ env_var('SQLSTREAM_SECRET_DB') }}"}
    sink = {"name": "lake", "format": "parquet", "path": "{{ model.name }}", "options": options}
    files = {
        "project.yml": {"name": "shop", "vars": {"region": "EU"}, "targets": {"prod": settings}},
        "sources.yml": {"sources": [{"name": "shop", "tables": [table]}]},
        "sinks.yml": {"sinks": [sink]},
    }
    write_files(folder, {name: json.dumps(content) for name, content in files.items()})
    write_files(folder, {"models/orders.sql": MODEL, "models/others.sql": MODEL})
    return RunRequest(ProjectRequest(folder, env=ENV))


def prepared(request: RunRequest) -> Submission:
    """Prepares a submission without sqlstream in its archive."""
    return prepare(request, lambda _: None, with_sqlstream=False)


def refused(request: RunRequest) -> tuple[str, str, str]:
    """Returns the code, the location and the fix of the finding that refuses a submission."""
    with pytest.raises(FindingsError) as error:
        prepared(request)
    (finding,) = error.value.findings
    return finding.code, str(finding.location), finding.fix


@pytest.mark.parametrize(
    ("target", "fix"),
    [
        ({"master": "local[2]"}, "sqlstream run"),
        ({"master": "spark://host:7077"}, "yarn or k8s://"),
        ({"remote": "sc://host:15002", "storage": "/mnt/shop"}, "spark-connect"),
    ],
)
def test_targets_without_cluster_mode_are_refused(tmp_path: Path, target: dict[str, Any], fix: str) -> None:
    """A local master, a standalone cluster and Spark Connect cannot start a driver in Python; the fix names what can."""
    request = project(tmp_path, **target)

    code, place, how = refused(request)

    assert (code, place) == ("unsupported-target", "project.yml:1:56")
    assert fix in how


def test_relative_paths_are_refused(tmp_path: Path) -> None:
    """A relative path of a source that a selected query reads is an error with its line; one of another is not."""
    request = project(tmp_path, orders="data/orders")

    code, place, _ = refused(request)

    assert (code, place.partition(":")[0]) == ("cannot-submit", "sources.yml")
    write_files(tmp_path, {"models/only.sql": "{{ config(sink='lake') }} select 1 as id"})
    only = RunRequest(request.project, Selection(("only",)))
    assert prepared(only).arguments == ("run", "--target", "prod", "--select", "only")


def test_findings_are_those_of_a_run(tmp_path: Path) -> None:
    """A project that does not compile is refused with the finding and the place that `run` reports."""
    request = project(tmp_path)
    write_files(tmp_path, {"models/broken.sql": "select * from {{ ref('nothing') }}"})

    assert refused(request)[:2] == ("unknown-ref", "models/broken.sql:1:18")


def test_a_file_that_is_not_packed_is_missing_before_anything_starts(tmp_path: Path) -> None:
    """The project compiles as it is in the archive, so what the archive lacks is an error here and not in the cluster."""
    request = project(tmp_path)
    sources = (tmp_path / "sources.yml").read_text()
    write_files(tmp_path, {"sources.yml": sources.replace('"schema": "id int"', '"schema_file": "tests/order.ddl"')})
    write_files(tmp_path, {"tests/order.ddl": "id int"})

    assert refused(request)[0] == "file-not-found"


def test_the_driver_gets_the_options_of_the_run(tmp_path: Path) -> None:
    """Each option of `run` is in the command of the driver, with the name of the target."""
    request = project(tmp_path)
    run = RunRequest(
        ProjectRequest(tmp_path, variables={"region": "EU", "n": 3}, env=ENV),
        Selection(("orders+",), ("others",), shard=Shard(1, 1)),
        available_now=True,
        full_refresh=True,
        limits=RunLimits(fail_fast=True, for_seconds=90.0),
        standby=True,
    )

    words = " ".join(prepared(run).arguments)

    assert words == (
        "run --target prod --select orders+ --exclude others --shard 1/1 --available-now --full-refresh "
        '--for 90.0 --fail-fast --vars {"n": 3, "region": "EU"} --standby'
    )
    assert request.project.target is None


def test_only_what_the_project_reads_leaves_this_machine(tmp_path: Path) -> None:
    """The variables are those that templates read, also by a computed name; secrets are those that the files name."""
    found = prepared(project(tmp_path))

    assert found.variables == {"DAYS": "7", "KIND_EU": "eu"}
    assert found.secrets == ("SQLSTREAM_SECRET_DB",)


def test_sql_that_sqlglot_cannot_read_sends_no_other_variables(tmp_path: Path) -> None:
    """Spark's parser, which then starts in Java with the whole environment, does not count as a reader of it."""
    root, java = tmp_path / "shop", tmp_path / "java"
    request = project(root)
    write_files(root, {"models/unread.sql": "{{ config(sink='lake') }}\nselect ??? as id"})
    write_files(java, {"release": 'JAVA_VERSION="21.0.1"\n', "bin/java": f"#!/bin/sh\nenv > {tmp_path}/env\nexit 1\n"})
    (java / "bin/java").chmod(0o755)
    env = {**ENV, "JAVA_HOME": str(java), "UNUSED": "1"}

    found = prepared(replace(request, project=replace(request.project, env=env)))

    assert "UNUSED=1" in (tmp_path / "env").read_text()
    assert found.variables == {"DAYS": "7", "KIND_EU": "eu"}


def test_secrets_are_those_that_the_run_uses(tmp_path: Path) -> None:
    """Secrets of other targets, of sinks without a query and in comments do not leave this machine: on Kubernetes, the
    driver would not start without them. Those of the target and of its alerts do, also if they are not set here.
    """
    request = project(
        tmp_path, **KUBERNETES, spark={**UPLOADS, "spark.shop.key": "{{ env_var('SQLSTREAM_SECRET_KEY') }}"}
    )
    declared = json.loads((tmp_path / "project.yml").read_text())
    declared["targets"]["other"] = {"master": "yarn", "spark": {"spark.x": "{{ env_var('SQLSTREAM_SECRET_OTHER') }}"}}
    declared["default_target"] = "prod"
    declared["alerts"] = {"notify": [{"name": "team", "webhook": "{{ env_var('SQLSTREAM_SECRET_HOOK') }}"}]}
    comment = "# env_var('SQLSTREAM_SECRET_OTHER')\n"
    unused = {"name": "unused", "format": "parquet", "options": {"a": "{{ env_var('SQLSTREAM_SECRET_OTHER') }}"}}
    sinks = json.loads((tmp_path / "sinks.yml").read_text())
    sinks["sinks"].append({**unused, "path": "x"})
    write_files(tmp_path, {"project.yml": comment + json.dumps(declared), "sinks.yml": json.dumps(sinks)})
    (tmp_path / "old.yml").write_bytes("# größe: SQLSTREAM_SECRET_OTHER".encode("latin-1"))

    assert prepared(request).secrets == ("SQLSTREAM_SECRET_DB", "SQLSTREAM_SECRET_HOOK", "SQLSTREAM_SECRET_KEY")


def test_a_full_refresh_starts_once(tmp_path: Path) -> None:
    """YARN does not start a driver again that would begin with another full refresh; other runs resume."""
    request = project(tmp_path / "shop", spark={"spark.yarn.maxAppAttempts": "4"})
    for full_refresh, attempts in ((True, "1"), (False, "4")):
        folder = tmp_path / f"files-{attempts}"
        folder.mkdir()
        words = spark_submit_arguments(prepared(replace(request, full_refresh=full_refresh)), folder, ENV)
        assert [word for word in words if "maxAppAttempts" in word] == [f"spark.yarn.maxAppAttempts={attempts}"]


def test_the_number_of_shown_rows_is_passed_on(tmp_path: Path) -> None:
    """`--limit` is in the command of the driver, unless it is the default."""
    request = project(tmp_path)

    assert prepared(replace(request, limit=3)).arguments[-2:] == ("--limit", "3")
    assert "--limit" not in prepared(replace(request, limit=MEMORY_ROWS)).arguments


def test_a_variable_with_a_secret_is_refused_where_others_see_it(tmp_path: Path) -> None:
    """A setting with the value of a secret would be on a command line, and a variable in a pod; YARN keeps variables."""
    env = {**ENV, "DAYS": SECRET}
    request = project(tmp_path, **KUBERNETES, spark={**UPLOADS, "spark.shop.key": "{{ env_var('KIND_EU') }}"})
    assert refused(RunRequest(ProjectRequest(tmp_path, env=env)))[0] == "cannot-submit"
    with pytest.raises(FindingsError) as error:
        prepared(RunRequest(ProjectRequest(tmp_path, env={**ENV, "KIND_EU": SECRET})))
    assert [finding.message.split()[0] for finding in error.value.findings] == ["`spark.shop.key`", "`KIND_EU`"]
    assert prepared(request).variables["KIND_EU"] == "eu"

    project(tmp_path)
    assert prepared(RunRequest(ProjectRequest(tmp_path, env=env))).variables["DAYS"] == SECRET


def test_on_yarn_variables_travel_in_a_private_file(tmp_path: Path) -> None:
    """Neither the command nor the archive has the value of a secret: it is in a file that only this user can read."""
    found, folder = (
        prepared(project(tmp_path, spark={"spark.executor.memory": "2g", "spark.files": "a,b"})),
        tmp_path / "f",
    )
    folder.mkdir()

    words = spark_submit_arguments(found, folder, ENV)

    assert not [word for word in words if SECRET in word]
    assert words[:6] == ["--master", "yarn", "--deploy-mode", "cluster", "--name", "sqlstream shop"]
    assert "spark.executor.memory=2g" in words
    assert not [word for word in words if word.startswith(("spark.master=", "spark.files="))]
    archive, variables = folder / found.archive.name, folder / ENVIRONMENT
    assert words[words.index("--files") + 1] == f"a,b,{archive},{variables}"
    assert words[-4:] == [found.archive.name, "run", "--target", "prod"]
    assert json.loads(variables.read_text()) == {"DAYS": "7", "KIND_EU": "eu", "SQLSTREAM_SECRET_DB": SECRET}
    assert stat.S_IMODE(variables.stat().st_mode) == 0o600
    assert SECRET.encode() not in archive.read_bytes()


def test_on_kubernetes_secrets_are_those_of_the_cluster(tmp_path: Path) -> None:
    """The driver's pod gets secrets from the Secret with the name of the project, and no file has their values."""
    found, folder = prepared(project(tmp_path, **KUBERNETES, spark=UPLOADS)), tmp_path / "files"
    folder.mkdir()

    words = spark_submit_arguments(found, folder, ENV)

    assert "spark.kubernetes.driver.secretKeyRef.SQLSTREAM_SECRET_DB=shop:SQLSTREAM_SECRET_DB" in words
    assert "spark.kubernetes.driverEnv.DAYS=7" in words
    assert not [word for word in words if SECRET in word]
    assert not (folder / ENVIRONMENT).exists()


@pytest.mark.parametrize(
    ("target", "env", "fix"),
    [
        ({"spark": {"spark.yarn.stagingDir": "s3a://bucket/staging"}}, ENV, "spark.yarn.stagingDir"),
        (KUBERNETES, ENV, "spark.kubernetes.file.upload.path"),
    ],
)
def test_what_cannot_be_sent_is_refused(tmp_path: Path, target: dict[str, Any], env: dict[str, str], fix: str) -> None:
    """A staging folder without permissions does not get secrets, and a pod without a place for its files does not start."""
    found = prepared(project(tmp_path, **target))

    with pytest.raises(FindingsError) as error:
        submit.submit(found, env, lambda _: None)

    assert error.value.findings[0].code == "cannot-submit"
    assert fix in error.value.findings[0].fix


@pytest.mark.parametrize(
    ("spark", "default", "is_open"),
    [
        ({}, "s3a://bucket", True),
        ({"spark.yarn.stagingDir": "/staging"}, "gs://bucket", True),
        ({"spark.yarn.stagingDir": "hdfs:///staging"}, "s3a://bucket", False),
        ({"spark.hadoop.fs.defaultFS": "hdfs://host"}, "s3a://bucket", False),
        ({}, "hdfs://host", False),
        ({}, "abfss://container@account", False),
        ({}, None, False),
    ],
)
def test_the_default_file_system_is_the_staging_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: dict[str, str], default: str | None, is_open: bool
) -> None:
    """A staging folder without a scheme is on Hadoop's default file system, in the settings of the cluster."""
    property_ = f"<property><name> fs.defaultFS </name><value>{default}</value></property>"
    write_files(tmp_path, {"conf/core-site.xml": f"<configuration>{property_ if default else ''}</configuration>"})
    found = prepared(project(tmp_path / "shop", spark=spark))
    monkeypatch.setattr(submit, "_spark_submit", lambda _: "/bin/true")
    env = {**ENV, "HADOOP_CONF_DIR": str(tmp_path / "conf")}

    if is_open:
        with pytest.raises(FindingsError, match="cannot-submit"):
            submit.submit(found, env, lambda _: None)
    else:
        assert submit.submit(found, env, lambda _: None)


def test_a_cluster_that_spark_does_not_know_is_a_usage_error(tmp_path: Path) -> None:
    """Without Hadoop's settings, or with an option that only this machine understands, nothing starts."""
    request = project(tmp_path)
    with pytest.raises(UsageError, match="HADOOP_CONF_DIR"):
        submit.submit(prepared(request), {"PATH": ""}, lambda _: None)
    with pytest.raises(UsageError, match="--state"):
        prepared(RunRequest(request.project, Selection(state=tmp_path)))
    with pytest.raises(UsageError, match="--vars"):
        prepared(RunRequest(ProjectRequest(tmp_path, variables={"key": SECRET}, env=ENV)))


@pytest.mark.parametrize("output", ["text", "json"])
def test_the_command_prints_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    """A refused submission ends with code 1 and the finding, as text or as JSON."""
    project(tmp_path, master="local[2]")
    for name in ("DAYS", "KIND_EU"):
        monkeypatch.setenv(name, ENV[name])

    with pytest.raises(SystemExit) as ended:
        main(["submit", "--project-dir", str(tmp_path), "--output", output])

    printed = capsys.readouterr()
    assert ended.value.code == 1
    if output == "text":
        assert printed.err.startswith("project.yml:1:56: [unsupported-target]")
    else:
        assert [each["code"] for each in json.loads(printed.out)["findings"]] == ["unsupported-target"]


def reports(*states: str) -> str:
    """Returns lines of spark-submit's log about an application in these states."""
    return "".join(
        f"26/11/29 10:00:00 INFO Client: Application report for application_1_2 (state: {state})\n" for state in states
    )


@pytest.mark.parametrize(
    ("log", "code", "shown"),
    [
        (
            reports("ACCEPTED", "ACCEPTED", "FINISHED"),
            0,
            ["application_1_2: accepted", "application_1_2: finished"],
        ),
        (
            reports("FAILED") + "Exception in thread main\n\tat org.apache.spark.Main\n",
            1,
            [
                "application_1_2: failed",
                "The driver has failed. Its log: yarn logs -applicationId application_1_2",
            ],
        ),
        (
            f"Exception in thread main: no such queue {SECRET}\n\tat org.apache.spark.Main\n",
            1,
            [
                "Exception in thread main: no such queue *****",
                "spark-submit has failed; logs/sqlstream.log has its whole log",
            ],
        ),
    ],
)
def test_the_states_of_the_driver_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, code: int, shown: list[str]
) -> None:
    """Each state is one line, a failure says where the log is, and neither Java's stack traces nor secrets are printed.
    spark-submit gets no secret in its environment.
    """
    found = prepared(project(tmp_path))
    script = tmp_path / "spark-submit"
    script.write_text(f"#!/bin/sh\nenv > {tmp_path}/env\ncat <<'END'\n{log}END\nexit {code}\n")
    script.chmod(0o755)
    monkeypatch.setattr(submit, "_spark_submit", lambda _: str(script))
    lines: list[str] = []

    succeeded = submit.submit(found, ENV, lines.append)

    assert (succeeded, lines) == (code == 0, shown)
    assert SECRET not in (tmp_path / "env").read_text()


def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Makes a shell script take the place of spark-submit."""
    path = tmp_path / "spark-submit"
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    monkeypatch.setattr(submit, "_spark_submit", lambda _: str(path))


POD = "\t pod name: sqlstream-shop-1-driver\n\t namespace: streams\n"


def phases(*states: str) -> str:
    """Returns lines of spark-submit's log about a driver's pod in these phases."""
    head = "26/11/29 10:00:00 INFO LoggingPodStatusWatcherImpl: State changed, new state:\n"
    return "".join(f"{head}{POD}\t phase: {state}\n" for state in states)


@pytest.mark.parametrize(
    ("log", "settings", "succeeded"),
    [
        (phases("Pending", "Running", "Failed"), {}, False),
        (phases("Running", "Succeeded"), {}, True),
        (phases("Pending", "Running"), {}, False),
        ("26/11/29 10:00:00 INFO LoggingPodStatusWatcherImpl: Deployed\n", {}, False),
        ("", {"spark.kubernetes.submission.waitAppCompletion": "false"}, True),
    ],
    ids=["failed", "succeeded", "deleted", "unknown", "not awaited"],
)
def test_only_a_driver_that_has_succeeded_is_a_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, settings: dict[str, str], succeeded: bool
) -> None:
    """On Kubernetes, spark-submit ends with 0 after each end of the driver's pod; its last state says how it ended."""
    found = prepared(project(tmp_path, **KUBERNETES, spark={**UPLOADS, **settings}))
    started(tmp_path, monkeypatch, f"cat <<'END'\n{log}END\n")

    assert submit.submit(found, ENV, lambda _: None) is succeeded


def test_the_pod_of_the_driver_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why the pod does not start is shown once, and a failure names the command that prints the log."""
    found = prepared(project(tmp_path, **KUBERNETES, spark=UPLOADS))
    waiting = "".join(
        f"\t\t container state: waiting\n\t\t pending reason: {reason}\n"
        for reason in ("ContainerCreating", "CreateContainerConfigError")
    )
    log = phases("Pending") + 2 * waiting + phases("Failed")
    started(tmp_path, monkeypatch, f"cat <<'END'\n{log}END\n")
    lines: list[str] = []

    assert not submit.submit(found, ENV, lines.append)
    pod = "sqlstream-shop-1-driver"
    assert lines == [
        f"{pod}: pending",
        f"{pod}: CreateContainerConfigError; see kubectl describe pod {pod} --namespace streams",
        f"{pod}: failed",
        f"The driver has failed. Its log: kubectl logs {pod} --namespace streams",
    ]


def test_what_kubernetes_refuses_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is no pod, the error has the words of Kubernetes, and the fix."""
    found = prepared(project(tmp_path, **KUBERNETES, spark=UPLOADS))
    message = (
        'Failure executing: POST at: https://k:6443/api/v1/namespaces/x/pods. Message: namespaces "x" not found. '
        "Received status: Status(apiVersion=v1, code=404, details=null)."
    )
    log = f'Exception in thread "main" io.fabric8.kubernetes.client.KubernetesClientException: {message}\n'
    started(tmp_path, monkeypatch, f"cat <<'END'\n{log}END\nexit 1\n")

    with pytest.raises(FindingsError) as error:
        submit.submit(found, ENV, lambda _: None)

    (finding,) = error.value.findings
    assert (finding.code, finding.why) == ("cannot-submit", 'Kubernetes at k:6443 refuses: namespaces "x" not found')
    assert "spark.kubernetes.namespace" in finding.fix


def test_the_secrets_do_not_stay_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once YARN reports the application, the file with the secrets is gone, however long the command then waits."""
    found = prepared(project(tmp_path))
    script = f"""for word in "$@"; do case $word in *{ENVIRONMENT}) file=${{word##*,}};; esac; done
[ -f "$file" ] || exit 3
cat <<'END'
{reports("ACCEPTED")}END
while [ -f "$file" ]; do :; done
"""
    started(tmp_path, monkeypatch, script)

    assert submit.submit(found, ENV, lambda _: None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_waiting_and_removes_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """SIGTERM and a closed terminal end the command as Ctrl-C does, and nothing stays in the folder for temporary files."""
    found, temporary = prepared(project(tmp_path)), tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    started(tmp_path, monkeypatch, f"cat <<'END'\n{reports('RUNNING')}END\nexec tail -f /dev/null\n")

    before = signal.signal(number, signal.SIG_DFL)  # with nohup, SIGHUP is ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            submit.submit(found, ENV, lambda _: os.kill(os.getpid(), number))
    finally:
        signal.signal(number, before)

    assert not list(temporary.iterdir())
