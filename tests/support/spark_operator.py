"""The fields of Kubeflow's Spark operator that sqlstream uses, as JSON Schemas, written from its API reference.

https://github.com/kubeflow/spark-operator/blob/master/docs/api-docs.md (v1beta2), and the types of `SparkConnect`
(v1alpha1). Fields that are not here are errors: Kubernetes drops unknown fields in silence. Compared with the models
of the package kubeflow-spark-api 2.4.0, which are made from the operator: it has each of these fields, with this type.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
SETTINGS = {"type": "object", "additionalProperties": TEXT}
CORES = {"type": "integer", "minimum": 1}
NAME = {"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
"""What all objects accept: the names of services, which the operator derives, begin with a letter."""


def fields(required: str = "", **properties: Any) -> dict[str, Any]:
    """Returns the schema of an object with exactly these properties, of which those in `required` must exist."""
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


KEY = fields("name key", name=NAME, key=TEXT, optional={"type": "boolean"})
VARIABLE = {
    "oneOf": [
        fields("name value", name=TEXT, value=TEXT),
        fields("name valueFrom", name=TEXT, valueFrom=fields("secretKeyRef", secretKeyRef=KEY)),
    ]
}
POD: dict[str, Any] = {
    "cores": CORES,
    "memory": TEXT,
    "memoryOverhead": TEXT,
    "serviceAccount": TEXT,
    "env": {"type": "array", "items": VARIABLE},
    "volumeMounts": {"type": "array", "items": fields("name mountPath", name=NAME, mountPath=TEXT)},
}
VOLUME = fields("name configMap", name=NAME, configMap=fields("name", name=NAME))
METADATA = fields("name", name=NAME, namespace=NAME, labels=SETTINGS)
INSTANCES = {"type": "integer", "minimum": 0}

SPARK_APPLICATION = fields(
    "apiVersion kind metadata spec",
    apiVersion={"const": "sparkoperator.k8s.io/v1beta2"},
    kind={"const": "SparkApplication"},
    metadata=METADATA,
    spec=fields(
        "type sparkVersion mainApplicationFile driver executor",
        type={"enum": ["Java", "Python", "Scala", "R"]},
        mode={"enum": ["cluster", "client"]},
        sparkVersion=TEXT,
        pythonVersion={"enum": ["2", "3"]},
        image=TEXT,
        mainApplicationFile=TEXT,
        arguments=TEXTS,
        sparkConf=SETTINGS,
        restartPolicy=fields(
            type={"enum": ["Never", "Always", "OnFailure"]},
            onFailureRetries={"type": "integer", "minimum": 0},
            onFailureRetryInterval={"type": "integer", "minimum": 1},
        ),
        volumes={"type": "array", "items": VOLUME},
        driver=fields(**POD),
        executor=fields(**POD, instances=INSTANCES),
        deps=fields(jars=TEXTS, files=TEXTS, archives=TEXTS, pyFiles=TEXTS, packages=TEXTS),
    ),
)

_CONNECT_POD: dict[str, Any] = {"cores": CORES, "memory": TEXT, "template": {"type": "object"}}
SPARK_CONNECT = fields(
    "apiVersion kind metadata spec",
    apiVersion={"const": "sparkoperator.k8s.io/v1alpha1"},
    kind={"const": "SparkConnect"},
    metadata=METADATA,
    spec=fields(
        "sparkVersion server executor",
        sparkVersion=TEXT,
        image=TEXT,
        sparkConf=SETTINGS,
        server=fields(**_CONNECT_POD),
        executor=fields(**_CONNECT_POD, instances=INSTANCES),
    ),
)
