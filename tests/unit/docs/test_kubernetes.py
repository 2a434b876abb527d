"""The manifests for Kubernetes are valid, and consistent with the image, the command line and each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from sqlstream.cli.main import cli
from tests.tools.command_lines import check_command_line
from tests.tools.doc_blocks import ROOT

FOLDER = ROOT / "docs" / "kubernetes"
MANIFESTS = sorted(FOLDER.glob("*.yaml"))
DOCUMENTS = [document for path in MANIFESTS for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
VERSIONS = ("1.31.0", "1.37.0")
"""The oldest version of Kubernetes in which all fields are stable, and the newest that the validator knows."""
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
Document = Mapping[str, Any]


def pods() -> Iterator[Document]:
    """Yields the specification of each pod."""
    for document in DOCUMENTS:
        if document["kind"] in ("StatefulSet", "Job"):
            yield document["spec"]["template"]["spec"]
        elif document["kind"] == "CronJob":
            yield document["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def containers() -> list[Document]:
    """Returns the containers of all pods."""
    return [container for pod in pods() for container in pod["containers"]]


def of_kind(kind: str) -> Document:
    """Returns the only document of a kind."""
    document: Document
    (document,) = [document for document in DOCUMENTS if document["kind"] == kind]
    return document


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["kind"])
def test_a_manifest_matches_the_schema_of_kubernetes(document: Document, version: str) -> None:
    """Kubernetes knows every field, and every value has the right type."""
    assert kubernetes_validate.validate(document, version, strict=True) == version.rpartition(".")[0]


def test_the_validator_finds_an_unknown_field() -> None:
    """A misspelled field is refused, also deep in a pod."""
    document = yaml.safe_load((FOLDER / "command.yaml").read_text(encoding="utf-8").replace("mountPath", "mountpath"))
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, VERSIONS[-1], strict=True)


def test_the_arguments_are_valid_command_lines() -> None:
    """Click accepts the arguments of each container; `tini` in the image needs none."""
    assert [container["args"][0] for container in containers()] == ["run", "build", "run"]
    for container in containers():
        check_command_line(container["args"])


def test_each_setting_is_a_variable_of_the_command_line() -> None:
    """The config map has only variables that an option of `run` reads."""
    command = cli.get_command(click.Context(cli), "run")
    assert command is not None
    known = {option.envvar for option in command.params}
    assert set(of_kind("ConfigMap")["data"]) <= known


def test_probes_and_the_service_use_the_port_of_the_metrics() -> None:
    """The probes ask the paths that a run answers on the port that it opens on all addresses."""
    (container,) = (container for container in containers() if "ports" in container)
    arguments = container["args"]
    port = int(arguments[arguments.index("--metrics-port") + 1])
    assert arguments[arguments.index("--metrics-host") + 1] == "0.0.0.0"
    assert container["ports"] == [{"name": "metrics", "containerPort": port}]
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    live, ready = {"path": "/health/live", "port": "metrics"}, {"path": "/health/ready", "port": "metrics"}
    assert probes == {"startup": live, "liveness": live, "readiness": ready}
    assert of_kind("Service")["spec"]["ports"] == [{"name": "metrics", "port": port}]
    annotations = of_kind("StatefulSet")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(port)


def test_pods_run_as_the_user_of_the_image_and_write_only_to_volumes() -> None:
    """All pods have the same user, volumes and limits; the paths are those of the image."""
    (uid,) = re.findall(r"useradd --uid (\d+)", DOCKERFILE)
    (storage,) = re.findall(r"(?m)^VOLUME (.+)$", DOCKERFILE)
    project = re.findall(r"(?m)^WORKDIR (.+)$", DOCKERFILE)[-1]
    for pod in pods():
        security = pod["securityContext"]
        assert [security[name] for name in ("runAsUser", "runAsGroup", "fsGroup")] == [int(uid)] * 3
        assert pod["terminationGracePeriodSeconds"] == 150
        assert {volume["name"] for volume in pod["volumes"]} == {"shop", "tmp"}
    for container in containers():
        assert container["securityContext"]["readOnlyRootFilesystem"]
        paths = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert paths == {storage, f"{project}/target", f"{project}/logs", "/tmp"}
    first, *others = [{key: container[key] for key in ("envFrom", "resources")} for container in containers()]
    assert all(other == first for other in others)


def test_pods_share_the_storage_and_nothing_else() -> None:
    """The folders that describe one run are different ones in each pod."""
    mounts = [
        {mount["mountPath"]: mount.get("subPath") for mount in container["volumeMounts"]} for container in containers()
    ]
    assert {folders["/var/lib/sqlstream"] for folders in mounts} == {"storage"}
    for name in ("/srv/project/target", "/srv/project/logs"):
        assert len({folders[name] for folders in mounts}) == len(mounts)


def test_names_between_the_manifests_fit() -> None:
    """Pods find the config map and the claim, and the service finds the pods of the stateful set."""
    template = of_kind("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert (
        of_kind("Service")["spec"]["selector"] == template == of_kind("StatefulSet")["spec"]["selector"]["matchLabels"]
    )
    for pod in pods():
        claims = [volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"] if "emptyDir" not in volume]
        assert claims == [of_kind("PersistentVolumeClaim")["metadata"]["name"]]
    for container in containers():
        configured, secret = container["envFrom"]
        assert configured == {"configMapRef": {"name": of_kind("ConfigMap")["metadata"]["name"]}}
        assert secret["secretRef"]["optional"]


def test_each_manifest_is_on_the_page() -> None:
    """The page links to each manifest."""
    page = FOLDER.with_suffix(".md").read_text(encoding="utf-8")
    assert all(f"](kubernetes/{manifest.name})" in page for manifest in MANIFESTS)
