"""The manifests for the Spark operator have only fields that it knows, and no secrets."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from sqlstream.app.session import start_driver
from sqlstream.app.submit import manifests
from sqlstream.app.submit.archive import Archive
from sqlstream.app.submit.manifests import spark_application, spark_connect
from sqlstream.app.submit.submit import Submission
from sqlstream.errors import FindingsError, UsageError
from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.project.secret_text import SecretName, SecretText
from sqlstream.state.runs.shards import Shard
from tests.support.spark_operator import SPARK_APPLICATION, SPARK_CONNECT

VERSION = "1.31.0"
SETTINGS = {
    "spark.app.name": "sqlstream shop",
    "spark.master": "k8s://https://kubernetes.default.svc",
    "spark.kubernetes.container.image": "shop:1",
    "spark.kubernetes.namespace": "streams",
    "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
    "spark.driver.memory": "2g",
    "spark.executor.instances": "3",
    "spark.executor.cores": "2",
    "spark.executor.memory": "4g",
    "spark.sql.shuffle.partitions": "12",
}
ARCHIVE = Archive("shop-0123456789ab.zip", b"PK", ("project.yml",))


def submission(**settings: str) -> Submission:
    """Returns a run of the project `Shop` whose target also has `settings`."""
    spark = {**SETTINGS, **{f"spark.{name.replace('_', '.')}": value for name, value in settings.items()}}
    target = Target(
        name="prod",
        location=Location("project.yml", 3, 3),
        master=spark["spark.master"],
        storage="s3a://b",
        spark=spark,
    )
    return Submission(
        "Shop",
        ARCHIVE,
        ("run", "--target", "prod"),
        target,
        spark,
        ("/home/ada/.cache/sqlstream/jars/kafka.jar",),
        {"DAYS": "7"},
        ("SQLSTREAM_SECRET_DB",),
    )


def documents(text: str) -> list[dict[str, Any]]:
    """Returns the documents of a manifest, and that they are valid YAML."""
    return list(yaml.safe_load_all(text))


def test_a_run_is_a_spark_application_with_its_project() -> None:
    """The manifest has the project as a ConfigMap, and an application that mounts it and runs the command."""
    files, application = documents(spark_application(submission()))

    kubernetes_validate.validate(files, VERSION, strict=True)
    jsonschema.validate(application, SPARK_APPLICATION)
    assert base64.b64decode(files["binaryData"][ARCHIVE.name]) == ARCHIVE.content
    spec = application["spec"]
    driver = Path(spec["mainApplicationFile"].removeprefix("local://"))
    assert base64.b64decode(files["binaryData"][driver.name]) == Path(start_driver.__file__).read_bytes()
    assert spec["volumes"] == [{"name": "project", "configMap": {"name": files["metadata"]["name"]}}]
    assert spec["driver"]["volumeMounts"] == [{"name": "project", "mountPath": str(driver.parent)}]
    assert spec["arguments"] == [ARCHIVE.name, "run", "--target", "prod"]
    assert (spec["executor"], spec["image"]) == ({"instances": 3, "cores": 2, "memory": "4g"}, "shop:1")
    assert {each["metadata"]["namespace"] for each in (files, application)} == {"streams"}


def test_settings_are_said_once() -> None:
    """What the operator has a field for is not in `sparkConf` too, and neither are master and paths of this machine."""
    _, application = documents(spark_application(submission()))

    assert application["spec"]["sparkConf"] == {"spark.sql.shuffle.partitions": "12"}
    assert application["spec"]["deps"] == {"jars": ["local:///opt/spark/connectors/kafka.jar"]}


FILES = {"jars": "local:///a.jar", "files": "s3a://b/f.txt, s3a://b/g.txt", "archives": "s3a://b/env.tar.gz#env"}
"""Settings of a target that list files."""


def test_files_of_the_target_are_kept() -> None:
    """Jars, files, archives and Python files of the target are fields of an application, and settings of a server."""
    found = submission(**FILES, submit_pyFiles="s3a://b/m.py")

    _, application = documents(spark_application(found))
    (server,) = documents(spark_connect(found))

    jsonschema.validate(application, SPARK_APPLICATION)
    image_jar = "local:///opt/spark/connectors/kafka.jar"
    assert application["spec"]["deps"] == {
        "jars": ["local:///a.jar", image_jar],
        "files": ["s3a://b/f.txt", "s3a://b/g.txt"],
        "archives": ["s3a://b/env.tar.gz#env"],
        "pyFiles": ["s3a://b/m.py"],
    }
    settings = server["spec"]["sparkConf"]
    assert settings["spark.jars"] == f"local:///a.jar,{image_jar}"
    assert settings["spark.files"] == "s3a://b/f.txt,s3a://b/g.txt"
    assert (settings["spark.archives"], settings["spark.submit.pyFiles"]) == ("s3a://b/env.tar.gz#env", "s3a://b/m.py")


def test_no_setting_of_the_pods_is_lost() -> None:
    """What a server has no field for stays a setting; an application has fields for all of them."""
    found = submission(executor_memoryOverhead="1g", driver_memoryOverhead="600m")

    _, application = documents(spark_application(found))
    (server,) = documents(spark_connect(found))

    assert application["spec"]["executor"]["memoryOverhead"] == "1g"
    assert not [name for name in application["spec"]["sparkConf"] if "memoryOverhead" in name]
    settings = server["spec"]["sparkConf"]
    assert (settings["spark.executor.memoryOverhead"], settings["spark.driver.memoryOverhead"]) == ("1g", "600m")


def test_a_full_refresh_is_not_started_again() -> None:
    """The operator restarts a driver that fails, unless that would begin another full refresh."""
    policies = [
        documents(spark_application(replace(submission(), repeats=repeats)))[1]["spec"]["restartPolicy"]["type"]
        for repeats in (True, False)
    ]

    assert policies == ["OnFailure", "Never"]


def test_a_server_with_a_secret_setting_is_refused() -> None:
    """The manifest of a server cannot have the setting, so it is an error and not left out."""
    found = submission()
    secret = SecretText((SecretName("SQLSTREAM_SECRET_DB"),))
    target = found.target.model_copy(update={"spark": {**found.target.spark, "spark.hadoop.key": secret}})

    with pytest.raises(FindingsError) as error:
        spark_connect(replace(found, target=target))

    (finding,) = error.value.findings
    assert (finding.code, finding.message.split()[0]) == ("cannot-submit", "`spark.hadoop.key`")
    assert spark_application(replace(found, target=target))


def test_secrets_are_references() -> None:
    """A secret is a key of the Secret with the name of the project; one that is missing there does not stop the pod."""
    _, application = documents(spark_application(submission()))

    key = {"name": "shop", "key": "SQLSTREAM_SECRET_DB", "optional": True}
    assert application["spec"]["driver"]["env"] == [
        {"name": "DAYS", "value": "7"},
        {"name": "SQLSTREAM_SECRET_DB", "valueFrom": {"secretKeyRef": key}},
    ]


def test_shards_are_different_objects() -> None:
    """The manifests of two shards do not replace each other, and use the same Secret."""
    first, second = (documents(spark_application(replace(submission(), shard=Shard(number, 2)))) for number in (1, 2))

    names = [[each["metadata"]["name"] for each in objects] for objects in (first, second)]
    assert names == [["shop-1-of-2-project", "shop-1-of-2"], ["shop-2-of-2-project", "shop-2-of-2"]]
    jsonschema.validate(second[1], SPARK_APPLICATION)
    assert first[1]["spec"]["driver"]["env"] == second[1]["spec"]["driver"]["env"]


def test_a_server_is_a_spark_connect() -> None:
    """The server has the image, the executors and the settings of the target."""
    (server,) = documents(spark_connect(submission()))

    jsonschema.validate(server, SPARK_CONNECT)
    for name in ("server", "executor"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **server["spec"][name]["template"]}
        kubernetes_validate.validate(pod, VERSION, strict=True)
    assert server["spec"]["executor"]["instances"] == 3
    assert server["spec"]["server"]["template"]["spec"]["serviceAccountName"] == "spark"
    assert "SQLSTREAM_SECRET_DB" not in str(server)


@pytest.mark.parametrize("manifest", [spark_application, spark_connect])
@pytest.mark.parametrize("settings", [{"kubernetes_container_image": ""}, {"executor_cores": "two"}])
def test_what_the_operator_does_not_accept_is_refused(manifest: Any, settings: dict[str, str]) -> None:
    """Without an image, or with a number that is none, there is no manifest."""
    with pytest.raises(FindingsError) as error:
        manifest(submission(**settings))

    (finding,) = error.value.findings
    assert (finding.code, str(finding.location)) == ("cannot-submit", "project.yml:3:3")


def test_a_large_project_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A project that is larger than a ConfigMap is refused, with another way."""
    large = replace(submission(), archive=replace(ARCHIVE, content=b"x" * manifests.LARGEST_CONFIG_MAP_BYTES))

    with pytest.raises(UsageError, match="without --manifest"):
        spark_application(large)
