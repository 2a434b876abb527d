"""What Kubernetes refuses is a reason in its words, with the setting that mends it. The logs are those of Spark 4.3."""

from __future__ import annotations

import pytest

from sqlstream.spark.jvm.kubernetes import pods_command, refusal

STATUS = (
    "Received status: Status(apiVersion=v1, code={code}, details=null, kind=Status, message={message}, metadata=ListMeta("
    "_continue=null, remainingItemCount=null, resourceVersion=null, selfLink=null, additionalProperties={{}}), "
    "reason=x, status=Failure, additionalProperties={{}})."
)


def refused(message: str, code: int, method: str = "POST") -> str:
    """Returns the line of Spark's log about a refusal."""
    return (
        f"io.fabric8.kubernetes.client.KubernetesClientException: Failure executing: {method} at: "
        f"https://example.com:6443/api/v1/namespaces/shop/pods. Message: {message}. "
        + STATUS.format(code=code, message=message)
    )


GHOST = 'pods "a" is forbidden: error looking up service account shop/x: serviceaccount "x" not found'
ROLE = 'pods is forbidden: User "ada" cannot create resource "pods" in API group "" in the namespace "shop"'


@pytest.mark.parametrize(
    ("message", "code", "fix"),
    [
        ("Unauthorized", 401, "`kubectl get pods`"),
        ('namespaces "shop" not found', 404, "set spark.kubernetes.namespace"),
        (GHOST, 403, "spark.kubernetes.authenticate.executor.serviceAccountName"),
        (ROLE, 403, "a role that can create, list, watch and delete pods"),
        ('pods "a" is forbidden: exceeded quota: q, requested: pods=1', 403, "quota"),
        ("pods is invalid: spec.nodeSelector", 422, "spark.kubernetes.*"),
    ],
)
def test_a_refusal_has_the_words_of_kubernetes_and_a_fix(message: str, code: int, fix: str) -> None:
    """The reason names the server, without the status object; the fix follows from the kind of refusal."""
    found = refusal(
        ["26/11/29 ERROR SparkContext: Error initializing SparkContext.", refused(message, code), "\tat x.y"]
    )

    assert found is not None
    assert found[0] == f"Kubernetes at example.com:6443 refuses: {message}"
    assert fix in found[1]


def test_what_spark_deletes_afterwards_is_not_the_reason() -> None:
    """After a refusal, Spark tries to delete what it may have created, which is refused too."""
    found = refusal([refused('namespaces "shop" not found', 404), refused("Unauthorized", 401, "DELETE")])

    assert found is not None
    assert found[0].endswith('namespaces "shop" not found')


def test_a_server_that_does_not_answer() -> None:
    """The reason is that of the connection, and the fix is about the address."""
    log = [
        "io.fabric8.kubernetes.client.KubernetesClientException: An error has occurred.",
        "Caused by: java.io.IOException: Connection refused: /127.0.0.1:9",
        "Caused by: io.netty.channel.AbstractChannel$AnnotatedConnectException: Connection refused: /127.0.0.1:9",
    ]

    found = refusal(log)

    assert found is not None
    assert found[0] == "Kubernetes does not answer: Connection refused: /127.0.0.1:9"
    assert "kubectl cluster-info" in found[1]


@pytest.mark.parametrize(
    "log", [[], ["Caused by: java.net.BindException: Address already in use"], ["Failure executing"]]
)
def test_other_errors_are_not_those_of_kubernetes(log: list[str]) -> None:
    """An error of Spark itself, or of another server, is none."""
    assert refusal(log) is None


def test_the_pods_of_a_run_are_found_by_its_application() -> None:
    """The command has the namespace, if it is not the default."""
    settings = {"spark.app.id": "spark-1", "spark.kubernetes.namespace": "streams"}

    assert pods_command(lambda name: settings.get(name, "")).endswith(
        "--namespace streams --selector spark-app-selector=spark-1"
    )
    assert pods_command(lambda name: "spark-1" if name == "spark.app.id" else "") == (
        "kubectl get pods --selector spark-app-selector=spark-1"
    )
