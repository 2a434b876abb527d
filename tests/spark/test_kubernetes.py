"""On Kubernetes: executors and drivers are pods, a submitted run is the same run, and what the cluster refuses is an error
with its fix. The server is fabric8's, and pods are processes of this machine.
"""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from sqlstream import ProjectRequest
from sqlstream.app import debug as checks
from sqlstream.compiler.spark_versions import minor_version
from sqlstream.spark.jvm.launch import end_jvm
from sqlstream.spark.storage.query_locks import LEASE_PERIOD
from tests.services.kubernetes import ACCOUNT, SMALL, Kubernetes, kubernetes_cluster
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, shop_project, wait_for
from tests.support.cluster_project import CODE, SUMS, expected_sums, orders_in, project_on, sums_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(minor_version(pyspark.__version__) == (4, 1), reason="the server is that of Spark 4.3's client"),
]

SECRET = "tulip4711"
ReadParquet = Callable[[Path], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    """A running API with a kubelet."""
    end_jvm()  # one of an earlier test does not know the cluster
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as kubernetes:
        yield kubernetes
    end_jvm()


@pytest.fixture
def kubernetes(started: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> Kubernetes:
    """The same, whose address and token the commands of the test find."""
    monkeypatch.setenv("KUBECONFIG", str(started.config))
    return started


@pytest.fixture
def shop(tmp_path: Path, kubernetes: Kubernetes) -> ProjectFolder:
    """A project with a stateful model, a seed, and a Python function that imports another module of python/, in a folder
    with a space in its name. Its storage is beside it.
    """
    shop = shop_project(tmp_path / "my shop")
    shop.write(CODE)
    sources = (shop.root / "sources.yml").read_text()
    shop.write({"sources.yml": sources.replace("in/orders", f"'{shop.root}/in/orders'")})
    set_target(shop, kubernetes)
    return shop


def set_target(shop: ProjectFolder, kubernetes: Kubernetes, **settings: str) -> None:
    """Writes project.yml. `settings` are those of Spark, with `__` for dots; empty ones are left out."""
    changed = {name.replace("__", "."): value for name, value in settings.items()}
    spark = {name: value for name, value in {**SMALL, LEASE_PERIOD: "1", **changed}.items() if value}
    shop.write(project_on("k8s", kubernetes.master, f"{shop.root.parent}/store", spark))


def add_orders(shop: ProjectFolder, *numbers: int) -> None:
    """Writes a file of orders for each number, an hour of a day in January."""
    for number in numbers:
        shop.rows(f"in/orders/{number}.json", orders_in(number), modified=number)


def sums(shop: ProjectFolder, read_parquet: ReadParquet) -> list[tuple[tuple[str, str], int]]:
    """Returns the sorted sums in the sink."""
    return sums_of(read_parquet(shop.root.parent / "store/sums"))


def finished(shop: ProjectFolder, *arguments: str) -> tuple[int, str]:
    """Returns the exit code and the output of a command in a new process."""
    process = shop.command(*arguments)
    printed, _ = process.communicate(timeout=3 * LONGEST_WAIT_SECONDS)
    return process.returncode, printed


def test_a_project_runs_resumes_and_survives_the_death_of_an_executor(
    shop: ProjectFolder, kubernetes: Kubernetes, read_parquet: ReadParquet
) -> None:
    """A query with state, a seed and a function runs in the pods of two executors, and resumes. An executor dies by
    `kill -9`; the run goes on, and each sum is exact. No pod remains. `status --check` then knows the query.
    """
    add_orders(shop, 0, 1)
    code, printed = finished(shop, "run", "--available-now")
    assert code == 0, printed
    add_orders(shop, 2, 3, 4)

    run = shop.command("run", "--available-now", "--log-format", "json")
    wait_for(run, '"event": "batch"')
    victim = kubernetes.processes("executor")[0]
    victim.signal(signal.SIGKILL)
    printed, _ = run.communicate(timeout=3 * LONGEST_WAIT_SECONDS)

    assert run.returncode == 0, printed
    assert "Lost executor" in (shop.root / "logs/sqlstream.log").read_text()
    assert sums(shop, read_parquet) == expected_sums(5)
    assert kubernetes.pods("executor") == []
    status = shop.invoke("status", "--check")
    assert "5 files read" in status.out, status


def test_debug_asks_the_executors(shop: ProjectFolder, kubernetes: Kubernetes) -> None:
    """`debug` has a line for the executors, the driver's address, their clocks, their Python and the storage."""
    found = {check.name: check for check in checks.debug(ProjectRequest(shop.root))}

    assert [(name, check.found) for name, check in found.items() if not check.ok] == []
    assert found["executors"].found == "2 executors with 2 cores"
    assert list(found)[-5:] == ["executors", "driver", "clocks", "workers", "shared"]


@pytest.mark.parametrize(
    ("settings", "token", "why", "fix"),
    [
        ({"spark__kubernetes__container__image": ""}, True, "executors are pods", "spark.kubernetes.container.image"),
        ({"spark__kubernetes__namespace": "ghost"}, True, 'namespaces "ghost" not found', "spark.kubernetes.namespace"),
        (
            {"spark__kubernetes__authenticate__executor__serviceAccountName": "ghost"},
            True,
            'serviceaccount "ghost" not found',
            "spark.kubernetes.authenticate.executor.serviceAccountName",
        ),
        ({}, False, "Unauthorized", "`kubectl get pods`"),
    ],
    ids=["image", "namespace", "account", "token"],
)
def test_what_the_cluster_refuses_ends_the_run(
    shop: ProjectFolder,
    monkeypatch: pytest.MonkeyPatch,
    kubernetes: Kubernetes,
    settings: Any,
    token: bool,
    why: str,
    fix: str,
) -> None:
    """The run ends with three lines: the reason in the words of Kubernetes, and the setting."""
    set_target(shop, kubernetes, **settings)
    if not token:
        monkeypatch.setenv("KUBECONFIG", str(shop.root / "none"))

    code, printed = finished(shop, "run", "--available-now")

    assert code == 1
    assert "[spark-start] Spark failed to start for target `k8s`" in printed
    lines = {line.strip().partition(": ")[0]: line for line in printed.splitlines()}
    assert (why in lines["why"], fix in lines["fix"], "\tat " in printed) == (True, True, False), printed


def test_a_run_without_executors_says_where_they_are(shop: ProjectFolder, kubernetes: Kubernetes) -> None:
    """If the image cannot be pulled, the run names the command that shows the pods, and a signal ends it at once, also with
    a number of partitions in the target.
    """
    set_target(shop, kubernetes, spark__kubernetes__container__image="ghost:1")
    add_orders(shop, 0)

    run = shop.command("run")
    wait_for(run, "no executor has registered yet; see kubectl get pods --selector spark-app-selector=spark-")
    run.send_signal(signal.SIGTERM)
    printed, _ = run.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert (run.returncode, "stopped before any query started" in printed) == (0, True), printed


def submitted(shop: ProjectFolder, kubernetes: Kubernetes, **settings: str) -> dict[str, str]:
    """Prepares a project and a cluster for `submit`, and returns the variables of the command."""
    uploads = shop.root.parent / "uploads"
    uploads.mkdir(exist_ok=True)
    set_target(
        shop,
        kubernetes,
        spark__driver__memory="600m",
        spark__kubernetes__driver__master=kubernetes.url,
        spark__kubernetes__file__upload__path=uploads.as_uri(),
        spark__kubernetes__authenticate__driver__serviceAccountName=ACCOUNT,
        spark__hadoop__shop__key="{{ env_var('SQLSTREAM_SECRET_KEY') }}",
        **settings,
    )
    return {"SQLSTREAM_SECRET_KEY": SECRET}


def create_secret(kubernetes: Kubernetes, namespace: str) -> None:
    """Creates the Secret with the name of the project, unless another test has done so."""
    known = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in kubernetes.client.list("secrets")}
    if (namespace, "shop") in known:
        return
    data = {"SQLSTREAM_SECRET_KEY": base64.b64encode(SECRET.encode()).decode()}
    content = {"kind": "Secret", "metadata": {"name": "shop"}, "data": data}
    kubernetes.client.create("secrets", namespace, content)


def test_a_submitted_run_is_the_same_run(
    shop: ProjectFolder, kubernetes: Kubernetes, read_parquet: ReadParquet
) -> None:
    """The pod of the driver has the project, its Python and the secret, and its sums are exact. `status` here knows the run.
    No file of the pods has the secret, and no upload.
    """
    env = submitted(shop, kubernetes)
    create_secret(kubernetes, "default")
    add_orders(shop, 0, 1, 2)

    first = shop.command("submit", "--available-now", env=env)
    printed, _ = first.communicate(timeout=3 * LONGEST_WAIT_SECONDS)

    assert first.returncode == 0, printed
    (driver,) = kubernetes.pods("driver")
    name = driver["metadata"]["name"]
    assert f"{name}: succeeded" in printed
    log = kubernetes.kubelet.pods[driver["metadata"]["uid"]].log.read_text()
    assert ("SUCCESS" in log, "INFO DAGScheduler" in log) == (True, False)  # the level is WARN
    assert sums(shop, read_parquet) == expected_sums(3)
    status = shop.command("status", "--output", "json", env=env)
    shown, _ = status.communicate(timeout=LONGEST_WAIT_SECONDS)
    (query,) = json.loads(shown[shown.index("{") :])["queries"]
    assert (query["model"], query["status"], query["rows_in"]) == ("sums", "success", 60)
    kept = [shop.root.parent / "uploads", kubernetes.config.parent]
    files = [path for folder in kept for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".zip", ".properties"}
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_a_driver_that_fails_is_a_failure(shop: ProjectFolder, kubernetes: Kubernetes) -> None:
    """A pod that waits for the Secret says so, and starts when it exists. spark-submit ends with 0 if the driver fails;
    `submit` ends with 1, and names the log of the pod.
    """
    env = submitted(shop, kubernetes, spark__kubernetes__namespace="streams")
    shop.write({"models/sums.sql": SUMS.replace("scaled(amount)", "assert_true(amount > 99)::int")})
    add_orders(shop, 0)

    run = shop.command("submit", "--available-now", env=env)
    wait_for(run, "-driver --namespace streams")
    create_secret(kubernetes, "streams")
    printed, _ = run.communicate(timeout=3 * LONGEST_WAIT_SECONDS)

    assert run.returncode == 1, printed
    (driver,) = [pod for pod in kubernetes.pods("driver") if pod["metadata"]["namespace"] == "streams"]
    name = driver["metadata"]["name"]
    assert f"{name}: failed\nThe driver has failed. Its log: kubectl logs {name} --namespace streams\n" in printed


def test_a_driver_whose_pod_is_deleted_is_a_failure(shop: ProjectFolder, kubernetes: Kubernetes) -> None:
    """spark-submit ends with 0 if the pod is deleted; `submit` ends with 1."""
    env = submitted(shop, kubernetes)
    create_secret(kubernetes, "default")

    run = shop.command("submit", env=env)
    wait_for(run, "-driver: running")
    for pod in kubernetes.processes("driver"):
        kubernetes.client.delete("pods", pod.namespace, pod.name)
    printed, _ = run.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert (run.returncode, "The driver has failed" in printed) == (1, True), printed
