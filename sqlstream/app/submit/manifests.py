"""Manifests for Kubeflow's Spark operator: a submitted run as a `SparkApplication`, or a server as a `SparkConnect`.

See https://www.kubeflow.org/docs/components/spark-operator/ for the fields.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlstream.app.session import start_driver
from sqlstream.app.submit.archive import kubernetes_name
from sqlstream.app.submit.submit import DRIVER, LISTS, OWN, Submission, cannot_submit, no_image
from sqlstream.compiler.spark_versions import installed_spark
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.configuration.target import Target
from sqlstream.spark.jvm.kubernetes import IMAGE, NAMESPACE
from sqlstream.spark.jvm.launch import JARS
from sqlstream.spark.secrets import secret_names

API = "sparkoperator.k8s.io"

FOLDER = "/opt/sqlstream-run"
"""Where the driver's pod has the archive."""

SERVICE_ACCOUNT = "spark.kubernetes.authenticate.driver.serviceAccountName"

LARGEST_CONFIG_MAP_BYTES = 1_000_000
"""Kubernetes stores at most 1 MiB in one object."""

RESTARTS = {"type": "OnFailure", "onFailureRetries": 10, "onFailureRetryInterval": 60}
"""When the operator starts a driver again that has failed: a run that ends by itself has succeeded."""

_DRIVER_FIELDS = {"cores": int, "memory": str, "memoryOverhead": str}
_EXECUTOR_FIELDS = {"instances": int, **_DRIVER_FIELDS}
"""The fields that the operator has for settings of Spark with the same names, and the types of their values."""

_DEPENDENCIES = {JARS: "jars", "spark.files": "files", "spark.archives": "archives", "spark.submit.pyFiles": "pyFiles"}
"""The fields of `deps` for settings that list files."""


def spark_application(submission: Submission) -> str:
    """Returns the YAML of two objects: a ConfigMap with the archive, which needs an image with sqlstream in it, and the
    `SparkApplication` that runs it. Secrets are those of the Secret with the name of the project.

    Raises: FindingsError, UsageError.
    """
    name, target = submission.object_name, submission.target
    packed = {
        DRIVER: Path(start_driver.__file__).read_bytes(),
        submission.archive.name: submission.archive.content,
    }
    encoded = {key: base64.b64encode(content).decode() for key, content in packed.items()}
    if sum(map(len, encoded.values())) > LARGEST_CONFIG_MAP_BYTES:
        raise UsageError(
            "the project is too large for a ConfigMap\n"
            f"  why: its archive has {len(submission.archive.content) / 1e6:.1f} MB, and Kubernetes stores at most "
            "1 MiB, in base64\n"
            "  fix: move seeds to a source, or use `sqlstream submit` without --manifest, which uploads the archive"
        )
    files = {**_head("v1", "ConfigMap", f"{name}-project", target), "binaryData": encoded}
    driver = {
        **_pod(target, "driver", _DRIVER_FIELDS),
        "env": _variables(submission),
        "volumeMounts": [{"name": "project", "mountPath": FOLDER}],
    }
    executor = _pod(target, "executor", _EXECUTOR_FIELDS)
    spec = {
        "type": "Python",
        "mode": "cluster",
        "sparkVersion": installed_spark(),
        "pythonVersion": "3",
        "image": _image(target),
        "mainApplicationFile": f"local://{FOLDER}/{DRIVER}",
        "arguments": [submission.archive.name, *submission.arguments],
        "sparkConf": _settings(submission, driver, executor),
        "restartPolicy": RESTARTS if submission.repeats else {"type": "Never"},
        "volumes": [{"name": "project", "configMap": {"name": f"{name}-project"}}],
        "driver": driver,
        "executor": executor,
    }
    deps = {_DEPENDENCIES[name]: paths for name, paths in _lists(submission).items()}
    if deps:
        spec["deps"] = deps
    application = {**_head(f"{API}/v1beta2", "SparkApplication", name, target), "spec": spec}
    return _documents([files, application])


def spark_connect(submission: Submission) -> str:
    """Returns the YAML of a `SparkConnect`: a server with the settings and connectors of the target, for runs on
    another target with `remote: sc://<project>-server:15002`.

    Raises: FindingsError without an image, or for a setting with a secret, which the server cannot read.
    """
    name, target = kubernetes_name(submission.name), submission.target
    secret = [key for key, value in target.spark.items() if secret_names([value])]
    why = "a manifest has no secrets, and the server starts without the variables of this machine"
    fix = "remove it from `spark` of the target, and add it to the server's pods as a Secret or a role"
    if secret:
        raise FindingsError(
            cannot_submit(target, f"`{key}` of target `{target.name}` contains a secret", why, fix) for key in secret
        )
    image = _image(target)
    server = {**_pod(target, "driver", {"cores": int, "memory": str}), **_template("driver", image, target)}
    server.pop("serviceAccount", None)  # it is in the template
    executor = _pod(target, "executor", {"instances": int, "cores": int, "memory": str})
    lists = {name: ",".join(paths) for name, paths in _lists(submission).items()}
    settings = {**_settings(submission, server, executor), **lists}
    spec = {
        "sparkVersion": installed_spark(),
        "image": image,
        "sparkConf": settings,
        "server": server,
        "executor": {**executor, **_template("executor", image, target)},
    }
    return _documents([{**_head(f"{API}/v1alpha1", "SparkConnect", name, target), "spec": spec}])


def _documents(objects: Sequence[Mapping[str, Any]]) -> str:
    """Returns objects as YAML, in which each of them is JSON."""
    return "".join(f"---\n{json.dumps(each, indent=2, ensure_ascii=False)}\n" for each in objects)


def _head(api: str, kind: str, name: str, target: Target) -> dict[str, Any]:
    namespace = target.spark.get(NAMESPACE)
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "sqlstream"}
    metadata = {"name": name, "labels": labels, **({"namespace": namespace} if isinstance(namespace, str) else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata}


def _pod(target: Target, which: str, fields: Mapping[str, type]) -> dict[str, Any]:
    """Returns the fields of the driver or of executors. Raises: FindingsError for a value that is not a number."""
    found: dict[str, Any] = {}
    for field, kind in fields.items():
        setting = f"spark.{which}.{field}"
        value = target.spark.get(setting)
        if value is not None and kind is int and not str(value).isdigit():
            what = f"`{setting}` of target `{target.name}` is `{value}`"
            why, fix = "Spark and the operator need a whole number", "set it to a number such as 2"
            raise FindingsError([cannot_submit(target, what, why, fix)])
        if value is not None:
            found[field] = kind(str(value))
    account = target.spark.get(SERVICE_ACCOUNT)
    return {**found, **({"serviceAccount": str(account)} if which == "driver" and account else {})}


def _template(which: str, image: str, target: Target) -> dict[str, Any]:
    """Returns the pod of a server or of its executors, whose containers the operator knows by these names."""
    account = target.spark.get(SERVICE_ACCOUNT) if which == "driver" else None
    pod = {"containers": [{"name": f"spark-kubernetes-{which}", "image": image}]}
    return {"template": {"spec": {**pod, **({"serviceAccountName": str(account)} if account else {})}}}


def _variables(submission: Submission) -> list[dict[str, Any]]:
    secret = kubernetes_name(submission.name)
    plain = [{"name": name, "value": value} for name, value in submission.variables.items()]
    # a missing one is an error of the run, with its name, if the target needs it
    keys = [(name, {"name": secret, "key": name, "optional": True}) for name in submission.secrets]
    return [*plain, *({"name": name, "valueFrom": {"secretKeyRef": key}} for name, key in keys)]


def _settings(submission: Submission, driver: Mapping[str, Any], executor: Mapping[str, Any]) -> dict[str, str]:
    """Returns the settings that are not in fields of the manifest, such as those of the pods."""
    fields = {f"spark.driver.{name}" for name in driver} | {f"spark.executor.{name}" for name in executor}
    own = OWN | fields | {IMAGE, NAMESPACE, SERVICE_ACCOUNT}
    return {name: value for name, value in sorted(submission.settings.items()) if name not in own}


def _lists(submission: Submission) -> dict[str, list[str]]:
    """Returns the paths in the settings that list files: those of the target, and jars of connectors in the image."""
    target = submission.target.spark
    found = {name: [path.strip() for path in str(target.get(name, "")).split(",") if path.strip()] for name in LISTS}
    found[JARS] += _image_jars(submission.jars)
    return {name: paths for name, paths in found.items() if paths}


def _image_jars(jars: Sequence[str]) -> list[str]:
    """Returns where the image must have the jars of connectors."""
    return [f"local:///opt/spark/connectors/{Path(jar).name}" for jar in jars]


def _image(target: Target) -> str:
    """Returns the image of the target. Raises: FindingsError without one."""
    image = target.spark.get(IMAGE)
    if isinstance(image, str) and image:
        return image
    raise FindingsError([no_image(target)])
