"""Kubernetes for tests: fabric8's API server on loopback, and a kubelet that runs pods as processes of this machine.

Spark's scheduler, its pods and its processes are real. Not there: images, a scheduler of pods with limits of memory, and
networks between machines.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from sqlstream.project.connectors.connectors import Jar
from sqlstream.spark.jvm.class_archive import cache_folder
from sqlstream.spark.jvm.jars import Repository, fetch_jar
from sqlstream.spark.jvm.java import java_path
from tests.services.kubelet import Kubelet, Pod
from tests.services.kubernetes_api import KubernetesClient
from tests.services.service_process import LOOPBACK, ServiceProcess, free_ports

_SERVER = (
    Jar("io.fabric8:kubernetes-server-mock:7.6.1", "2c76a300c19e2d359a1b465d3cbbc90428470a74822282f05830185faa346fb2"),
    Jar("io.fabric8:mockwebserver:7.6.1", "e160c151c605f1be87c60c3d93711e2a4621ce0491ce02a437ccf57fa83d266d"),
    Jar("io.vertx:vertx-web:4.5.26", "2f01d04fd07a7b08d63f3680ff9d05c4f7b4880f1bae10a8d2f30c6c2f407687"),
    Jar("io.vertx:vertx-bridge-common:4.5.26", "175fc6af72dbecae11019f562e40892094d4d3c1172c40315f855593cb562067"),
)
"""The server, in the version of fabric8's client that Spark 4.3 has."""

IMAGE = "shop:1"
"""The only image that can be pulled."""

ACCOUNT = "spark"
TOKEN = "token-of-kubernetes-4711"
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

SMALL = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": _SHORT_LIVED,
    "spark.kubernetes.container.image": IMAGE,
    # an executor otherwise comes after a second or more
    "spark.kubernetes.allocation.batch.delay": "200ms",
}
"""Settings of Spark with which applications start fast, and need little memory."""


@dataclass(frozen=True)
class Kubernetes:
    """A running API at `url`. `config` is a file for KUBECONFIG with its token."""

    url: str
    config: Path
    client: KubernetesClient
    kubelet: Kubelet

    @property
    def master(self) -> str:
        """The value of `master` of a target."""
        return f"k8s://{self.url}"

    def pods(self, role: str) -> list[dict[str, Any]]:
        """Returns the pods that exist with a role of Spark: `driver` or `executor`."""
        return self.client.list("pods", f"spark-role={role}")

    def processes(self, role: str) -> list[Pod]:
        """Returns the pods with a role of Spark whose processes run."""
        living = (self.kubelet.pods.get(pod["metadata"]["uid"]) for pod in self.pods(role))
        return [pod for pod in living if pod is not None and pod.process is not None and pod.process.poll() is None]


@contextmanager
def kubernetes_cluster(folder: Path, env: Mapping[str, str] = os.environ) -> Iterator[Kubernetes]:
    """Runs the API and the kubelet until the body ends. The namespaces are `default` and `streams`; each has the service
    accounts `default` and `spark`. Logs and the folders of pods are in `folder`. Downloads the server into the user's
    cache if it is missing.
    """
    java, cache = java_path(env), cache_folder(env)
    if java is None or cache is None:
        raise RuntimeError("the server with Kubernetes' API needs Java and a folder for a cache")
    (port,) = free_ports(1)
    jars = [str(fetch_jar(jar, cache / "jars", [Repository()], lambda *_: None)) for jar in _SERVER]
    class_path = os.pathsep.join([*jars, f"{Path(pyspark.__file__).parent}/jars/*"])
    source = str(Path(__file__).with_name("KubernetesApi.java"))
    arguments = [LOOPBACK, str(port), TOKEN, "default,streams", f"default,{ACCOUNT}"]
    command = [java, "-Xmx256m", *_SHORT_LIVED.split(), "-cp", class_path, source, *arguments]
    server = ServiceProcess(command, port, folder / "api.log")
    server.start()
    try:
        url = f"http://{LOOPBACK}:{port}"
        client = KubernetesClient(url, TOKEN)
        kubelet = Kubelet(client, folder, java, TOKEN, [IMAGE])
        try:
            yield Kubernetes(url, write_config(folder / "config", url, TOKEN), client, kubelet)
        finally:
            kubelet.stop()
    finally:
        server.stop(signal.SIGKILL)


def write_config(file: Path, url: str, token: str) -> Path:
    """Writes a file for KUBECONFIG with a cluster and a user, and returns it."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    file.write_text(json.dumps(content))
    return file
