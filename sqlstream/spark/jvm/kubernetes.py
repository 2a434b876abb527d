"""What Kubernetes refuses when Spark asks it for pods, as a reason and a fix, and the command that shows the pods."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

K8S = "k8s://"
"""How the master of a target on Kubernetes begins."""

IMAGE = "spark.kubernetes.container.image"
EXECUTOR_IMAGE = "spark.kubernetes.executor.container.image"
NAMESPACE = "spark.kubernetes.namespace"

NO_IMAGE = f"executors are pods, and {IMAGE} does not say which image they have"
NO_IMAGE_FIX = f"set {IMAGE} in `spark` of the target to an image with Spark, Java and Python"

_REFUSED = re.compile(
    r"Failure executing: (?P<method>[A-Z]+) at: (?P<url>\S+?)\. Message: (?P<message>.*?)\.? Received status: "
)
"""A refusal of the API server, in the words of fabric8's client."""
_STATUS = re.compile(r"Received status: Status\(.*?\bcode=(?P<code>\d+)")
_UNREACHABLE = re.compile(r"KubernetesClientException: (?:An error has occurred|Operation: \[\w+\])")
_CONNECTION = re.compile(
    r"Caused by: (?:java\.net|javax\.net|io\.vertx|io\.netty)\.\S+?(?:Exception|Error): (?P<reason>.+)"
)

_ROLE = (
    "give the user, or the driver's service account (spark.kubernetes.authenticate.driver.serviceAccountName), a role "
    "that can create, list, watch and delete pods, services and config maps there"
)
_LOG_IN = (
    "log in to the cluster, so that `kubectl get pods` works, or set spark.kubernetes.context or "
    "spark.kubernetes.authenticate.oauthTokenFile in `spark` of the target"
)
_NO_NAMESPACE = f"create the namespace, or set {NAMESPACE} in `spark` of the target to one that exists"
_NO_ACCOUNT = (
    "create the service account, or set spark.kubernetes.authenticate.driver.serviceAccountName or "
    "spark.kubernetes.authenticate.executor.serviceAccountName to one that exists"
)
_QUOTA = "request fewer or smaller executors (spark.executor.instances, spark.executor.memory), or raise the quota"
_NO_SERVER = (
    "set `master` of the target to the address that `kubectl cluster-info` prints, with k8s:// before it; if its "
    "certificate is not trusted, set spark.kubernetes.authenticate.caCertFile"
)


def refusal(log: Iterable[str]) -> tuple[str, str] | None:
    """Returns why Kubernetes gives Spark no pods, and the fix, from the lines of Spark's log or of an error; None if
    they do not say so. The last refusal counts.
    """
    lines = list(log)
    for line in reversed(lines):
        found, status = _REFUSED.search(line), _STATUS.search(line)
        if found and found["method"] != "DELETE":  # Spark cleans up after the error
            return _refused(found["url"], found["message"], int(status["code"]) if status else 0)
    if any(map(_UNREACHABLE.search, lines)):
        reasons = (found["reason"] for line in reversed(lines) if (found := _CONNECTION.search(line)))
        return f"Kubernetes does not answer: {next(reasons, 'no connection')}", _NO_SERVER
    return None


def _refused(url: str, message: str, code: int) -> tuple[str, str]:
    why = f"Kubernetes at {urlsplit(url).netloc} refuses: {message}"
    if code == 401:
        return why, _LOG_IN
    if "serviceaccount" in message and "not found" in message:
        return why, _NO_ACCOUNT
    if "exceeded quota" in message:
        return why, _QUOTA
    if code == 403:
        return why, _ROLE
    if code == 404 and message.startswith("namespaces "):
        return why, _NO_NAMESPACE
    return why, "fix the settings spark.kubernetes.* in `spark` of the target; logs/sqlstream.log has details"


def pods_command(setting: Callable[[str], str]) -> str:
    """Returns the command that lists the pods of the application with the settings `setting(name)`."""
    namespace = setting(NAMESPACE)
    within = f" --namespace {namespace}" if namespace else ""
    return f"kubectl get pods{within} --selector spark-app-selector={setting('spark.app.id')}"
