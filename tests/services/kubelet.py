"""Runs the pods of a Kubernetes API as processes of this machine, as the kubelet of a node runs their containers.

A pod is one process with an address of loopback to itself. Its image is not used: the process is what the entrypoint of
Spark's image would start, with the Spark of this Python. Volumes are folders, and their paths are replaced by those of
the folders in the arguments, the variables and the files of ConfigMaps. Pods with other needs fail with the reason.
"""

from __future__ import annotations

import base64
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark

from tests.services.kubernetes_api import KubernetesClient, KubernetesError
from tests.services.service_process import LOOK_SECONDS, LOOPBACK

GRACE_SECONDS = 30.0
"""The time between SIGTERM and SIGKILL for the process of a deleted pod, as in Kubernetes."""

TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
SPARK_HOME = Path(pyspark.__file__).parent
WORK_FOLDER = "/opt/spark/work-dir"
EXECUTOR_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
"""What the entrypoint of Spark's image passes to an executor, and the variables with the values."""


class PodError(Exception):
    """A pod cannot start: the reason that its status shows, and whether this can change, so the pod stays pending."""

    def __init__(self, reason: str, message: str, *, waits: bool = True) -> None:
        super().__init__(message)
        self.reason, self.waits = reason, waits


class MissingError(Exception):
    """An optional value does not exist."""


@dataclass
class Pod:
    """A pod with its process. `folder` has its volumes, its work folder and its log."""

    uid: str
    name: str
    namespace: str
    address: str
    folder: Path
    java: str
    process: subprocess.Popen[bytes] | None = None
    deleted_at: float = 0
    started: str = ""
    paths: dict[str, Path] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        """The file with everything that the pod prints."""
        return self.folder / "log"

    def mapped(self, text: str) -> str:
        """Returns `text` with the folders of this machine instead of the paths in the container."""
        for path in sorted(self.paths, key=len, reverse=True):
            here = str(self.paths[path]).replace("\\", r"\\")
            text = re.sub(rf"(?<![\w/.-]){re.escape(path)}(?![\w-])", here, text)
        return text

    def start(self, spec: Mapping[str, Any], client: KubernetesClient, hosts: Path, token: str) -> None:
        """Starts the process of the pod's only container. Raises: PodError."""
        if len(spec["containers"]) != 1 or spec.get("initContainers"):
            raise PodError("Unsupported", "only pods with one container can run here", waits=False)
        (container,) = spec["containers"]
        self.paths = {WORK_FOLDER: self._made("work"), TOKEN_FOLDER: self._made("token")}
        (self.paths[TOKEN_FOLDER] / "token").write_text(token)
        (self.paths[TOKEN_FOLDER] / "namespace").write_text(self.namespace)
        volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
        for mount in container.get("volumeMounts", ()):
            path = self._volume(volumes[mount["name"]], client) / mount.get("subPath", "")
            self.paths[mount["mountPath"]] = path
        for path in self.paths.values():
            self._map_files(path)
        given = {name: self.mapped(value) for name, value in self._variables(container, client)}
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.paths[WORK_FOLDER]),
            "SPARK_HOME": str(SPARK_HOME),
            "HOSTNAME": self.name,
            "KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN": str(self.paths[TOKEN_FOLDER] / "token"),
            **given,
            # the DNS of the cluster
            "JAVA_TOOL_OPTIONS": f"-Djdk.net.hosts.file={hosts} {given.get('JAVA_TOOL_OPTIONS', '')}".strip(),
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command(container, env),
                cwd=self.paths[WORK_FOLDER],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _volume(self, volume: Mapping[str, Any], client: KubernetesClient) -> Path:
        """Returns the folder of a volume with its files. Raises: PodError."""
        if "hostPath" in volume:
            return Path(volume["hostPath"]["path"])
        folder = self._made(f"volume-{volume['name']}")
        if "configMap" in volume:
            found = self._object(client, "configmaps", volume["configMap"]["name"])
            files = {name: text.encode() for name, text in found.get("data", {}).items()}
            files |= {name: base64.b64decode(data) for name, data in found.get("binaryData", {}).items()}
            self._write(folder, files, volume["configMap"].get("items"))
        elif "secret" in volume:
            found = self._object(client, "secrets", volume["secret"]["secretName"])
            self._write(folder, _decoded(found), volume["secret"].get("items"))
        elif "emptyDir" not in volume:
            raise PodError("Unsupported", f"the volume {volume['name']} cannot be mounted here", waits=False)
        return folder

    @staticmethod
    def _write(folder: Path, files: Mapping[str, bytes], items: Iterable[Mapping[str, str]] | None) -> None:
        for name, path in [(each["key"], each["path"]) for each in items or ()] or [(name, name) for name in files]:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(files[name])

    def _map_files(self, folder: Path) -> None:
        """Replaces paths in the files of ConfigMaps, such as `spark.properties`."""
        if folder.parent == self.folder and folder.is_dir():
            for file in folder.glob("*.properties"):
                file.write_text(self.mapped(file.read_text()))

    def _object(self, client: KubernetesClient, kind: str, name: str) -> dict[str, Any]:
        try:
            return client.get(kind, self.namespace, name)
        except KubernetesError as error:
            raise PodError("CreateContainerConfigError", f"{kind} {name}: {error}") from error

    def _variables(self, container: Mapping[str, Any], client: KubernetesClient) -> Iterator[tuple[str, str]]:
        """Yields the variables of a container. Raises: PodError."""
        if "envFrom" in container:
            raise PodError("Unsupported", "envFrom cannot be used here", waits=False)
        for variable in container.get("env", ()):
            with suppress(MissingError):
                yield variable["name"], self._value(variable, client)

    def _value(self, variable: Mapping[str, Any], client: KubernetesClient) -> str:
        source = variable.get("valueFrom", {})
        if "fieldRef" in source:
            facts = {"status.podIP": self.address, "metadata.name": self.name, "metadata.namespace": self.namespace}
            return facts[source["fieldRef"]["fieldPath"]]
        if "secretKeyRef" in source:
            return self._key("secrets", source["secretKeyRef"], client).decode()
        if "configMapKeyRef" in source:
            return self._key("configmaps", source["configMapKeyRef"], client).decode()
        return str(variable.get("value", ""))

    def _key(self, kind: str, key: Mapping[str, Any], client: KubernetesClient) -> bytes:
        """Returns a value. Raises: PodError; MissingError without one that is optional."""
        try:
            found = self._object(client, kind, key["name"])
            values = _decoded(found) if kind == "secrets" else {k: v.encode() for k, v in found.get("data", {}).items()}
            return values[key["key"]]
        except (KeyError, PodError) as error:
            if key.get("optional"):
                raise MissingError from error
            if isinstance(error, PodError):
                raise
            reason = f"couldn't find key {key['key']} in {kind} {key['name']}"
            raise PodError("CreateContainerConfigError", reason) from error

    def _command(self, container: Mapping[str, Any], env: Mapping[str, str]) -> list[str]:
        """Returns what the container runs: its command, or what the entrypoint of Spark's image makes of the arguments."""
        arguments = [self.mapped(each) for each in container.get("args", ())]
        if "command" in container:
            return [*(self.mapped(each) for each in container["command"]), *arguments]
        if arguments[0] == "driver":
            address = env["SPARK_DRIVER_BIND_ADDRESS"]
            settings = {"spark.driver.bindAddress": address, "spark.executorEnv.SPARK_DRIVER_POD_IP": address}
            given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
            return [f"{SPARK_HOME}/bin/spark-submit", *given, "--deploy-mode", "client", *arguments[1:]]
        if arguments[0] == "executor":
            numbered = [name for name in env if name.startswith("SPARK_JAVA_OPT_")]
            options = [env[name] for name in sorted(numbered, key=lambda name: int(name.rpartition("_")[2]))]
            memory = env["SPARK_EXECUTOR_MEMORY"]
            class_path = f"{env.get('SPARK_CLASSPATH', '')}:{env.get('SPARK_CONF_DIR', '')}:{SPARK_HOME}/jars/*"
            backend = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
            given = [word for option, name in EXECUTOR_ARGUMENTS.items() for word in (option, env[name])]
            return [self.java, *options, f"-Xms{memory}", f"-Xmx{memory}", "-cp", class_path, backend, *given]
        return arguments

    def signal(self, number: int) -> None:
        """Sends a signal to all processes of the pod."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


def _decoded(secret: Mapping[str, Any]) -> dict[str, bytes]:
    values = {name: base64.b64decode(value) for name, value in secret.get("data", {}).items()}
    return values | {name: value.encode() for name, value in secret.get("stringData", {}).items()}


class Kubelet:
    """Starts and ends the processes of all pods in a thread until `stop`.

    `images` are those that can be pulled. `pods` has the pods of the past too.
    """

    def __init__(self, client: KubernetesClient, folder: Path, java: str, token: str, images: Iterable[str]) -> None:
        self.pods: dict[str, Pod] = {}
        self._client, self._folder, self._java, self._token = client, folder, java, token
        self._images = frozenset(images)
        self._hosts = folder / "hosts"
        self._write_hosts([])
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="kubelet", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Kills all processes."""
        self._ending.set()
        self._thread.join()
        for pod in self.pods.values():
            pod.signal(signal.SIGKILL)
            if pod.process is not None:
                pod.process.wait()

    def _work(self) -> None:
        while not self._ending.wait(LOOK_SECONDS):
            with suppress(KubernetesError):  # another client has deleted the pod
                self._look()

    def _look(self) -> None:
        found = {pod["metadata"]["uid"]: pod for pod in self._client.list("pods")}
        names = {pod["metadata"]["name"] for pod in found.values()}
        new = [uid for uid in found if uid not in self.pods]
        for uid in new:
            number = len(self.pods) + 2
            about = found[uid]["metadata"]
            folder = self._folder / f"{about['name']}-{number}"
            folder.mkdir()
            address = f"127.1.{number // 250}.{number % 250}"
            self.pods[uid] = Pod(uid, about["name"], about["namespace"], address, folder, self._java)
        if new:
            self._write_hosts(list(found.values()))
        for uid, pod in self.pods.items():
            if uid not in found:
                self._end(pod)
                continue
            owners = {owner["name"] for owner in found[uid]["metadata"].get("ownerReferences", ())}
            if owners - names:
                self._client.delete("pods", pod.namespace, pod.name)
            elif pod.process is None:
                self._start(pod, found[uid])
            elif found[uid]["status"]["phase"] == "Running" and pod.process.poll() is not None:
                self._report(pod, found[uid], _ended(pod.process.returncode, pod.started))

    def _start(self, pod: Pod, found: dict[str, Any]) -> None:
        status = found.get("status", {})
        if status.get("phase") == "Failed":
            return
        try:
            self._check_image(found["spec"]["containers"][0]["image"])
            self._write_hosts(self._client.list("pods"))
            pod.start(found["spec"], self._client, self._hosts, self._token)
            pod.started = _now()
            self._report(pod, found, {"phase": "Running", "state": {"running": {"startedAt": pod.started}}})
        except PodError as error:
            waiting = {"waiting": {"reason": error.reason, "message": str(error)}}
            changed = {"phase": "Pending" if error.waits else "Failed", "message": str(error), "state": waiting}
            known = status.get("containerStatuses", [{}])[0].get("state")
            if known != waiting:
                self._report(pod, found, changed)

    def _check_image(self, image: str) -> None:
        if image not in self._images:
            raise PodError("ErrImagePull", f'failed to pull and unpack image "{image}": not found')

    def _end(self, pod: Pod) -> None:
        if pod.process is None or pod.process.poll() is not None:
            return
        now = datetime.now(UTC).timestamp()
        if not pod.deleted_at:
            pod.deleted_at = now
            pod.signal(signal.SIGTERM)
        elif now - pod.deleted_at > GRACE_SECONDS:
            pod.signal(signal.SIGKILL)

    def _report(self, pod: Pod, found: dict[str, Any], change: dict[str, Any]) -> None:
        state = change.pop("state")
        (container,) = found["spec"]["containers"][:1]
        about = {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0}
        ready = "running" in state
        statuses = [{**about, "ready": ready, "started": ready, "state": state}]
        conditions = [{"type": kind, "status": str(ready)} for kind in ("Ready", "ContainersReady")]
        addresses = {"podIP": pod.address, "hostIP": LOOPBACK}
        status = {**addresses, "conditions": conditions, "containerStatuses": statuses, **change}
        self._client.report("pods", found, status)

    def _write_hosts(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Writes the names of services and their pods for Java, which reads the file for each name."""
        lines = [f"{LOOPBACK} localhost", f"{LOOPBACK} {socket.gethostname()}"]
        known = {pod["metadata"]["uid"]: pod["metadata"].get("labels", {}) for pod in pods}
        for service in self._client.list("services"):
            about, chosen = service["metadata"], service["spec"].get("selector", {})
            for uid, labels in known.items():
                if uid in self.pods and chosen and chosen.items() <= labels.items():
                    name = f"{about['name']}.{about['namespace']}"
                    lines.append(f"{self.pods[uid].address} {about['name']} {name}.svc {name}.svc.cluster.local")
        text = "\n".join([*lines, ""])
        if not self._hosts.exists() or self._hosts.read_text() != text:
            aside = self._hosts.with_suffix(".new")
            aside.write_text(text)
            aside.replace(self._hosts)


def _ended(code: int, started: str) -> dict[str, Any]:
    """Returns the status of a pod whose process has ended; after a signal the exit code of a shell."""
    number = code if code >= 0 else 128 - code
    reason = "Completed" if number == 0 else "Error"
    about = {"exitCode": number, "reason": reason, "startedAt": started, "finishedAt": _now()}
    return {"phase": "Succeeded" if number == 0 else "Failed", "state": {"terminated": about}}


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
