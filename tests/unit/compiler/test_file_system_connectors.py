"""The connectors of file systems, which paths need by their schemes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.connectors import NeededConnector, needed_connectors
from tests.support.compiling import write_files

FILES = {
    "project.yml": "name: p\ntargets: {local: {storage: STORAGE, spark: {SPARK}}}\n",
    "sources.yml": "sources:\n  - name: web\n    tables:\n"
    "      - {name: clicks, format: json, path: SOURCE, schema: id int}\n",
    "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: SINK}\n",
    "models/m.sql": "{{ config(sink='lake', checkpoint='CHECKPOINT') }} select id from {{ source('web', 'clicks') }}",
    "models/other.sql": "{{ config(sink='lake2') }} select 1 as id",
    "models/sinks.yml": "sinks:\n  - {name: lake2, format: parquet, path: other}\n",
}
PLAIN = {"STORAGE": "data", "SPARK": "", "SOURCE": "in", "SINK": "out", "CHECKPOINT": "checkpoints/m"}


def needed(root: Path, models: list[str] | None = None, **values: str) -> dict[str, NeededConnector]:
    """Returns the connectors of a project with these values in `FILES`."""
    written = {}
    for name, text in FILES.items():
        for word, value in {**PLAIN, **values}.items():
            text = text.replace(word, value)
        written[name] = text
    write_files(root, written)
    return needed_connectors(load_for_reading(ProjectRequest(root, env={})).compiled, models)


@pytest.mark.parametrize(
    ("key", "path", "by", "location"),
    [
        ("STORAGE", "s3a://b/p", "target `local`", "project.yml:2:11"),
        ("SOURCE", "s3a://b/in", "source `web.clicks`", "sources.yml:4:44"),
        ("SINK", "s3a://b/out", "sink `lake`", "sinks.yml:2:12"),
        ("CHECKPOINT", "s3a://b/c", "the checkpoint of `m`", "models/m.sql:1:24"),
    ],
)
def test_a_path_on_s3_needs_its_connector(tmp_path: Path, key: str, path: str, by: str, location: str) -> None:
    """It is that of the storage, a source, a sink or a checkpoint."""
    (found,) = needed(tmp_path, None, **{key: path}).values()
    assert (found.connector.name, found.by, str(found.location)) == ("s3", by, location)


def test_other_paths_need_none(tmp_path: Path) -> None:
    """Spark itself reads local files and HDFS."""
    assert needed(tmp_path, STORAGE="hdfs://nn:8020/p", SOURCE="file:/in", SINK="/out/s3a") == {}


def test_paths_without_a_scheme_are_on_the_default_file_system(tmp_path: Path) -> None:
    """The target can name it for Hadoop."""
    assert set(needed(tmp_path, SPARK="spark.hadoop.fs.defaultFS: 's3a://b'")) == {"s3"}


def test_a_target_can_bring_its_own_client(tmp_path: Path) -> None:
    """A jar of hadoop-aws in `spark.jars` replaces the connector."""
    assert needed(tmp_path, STORAGE="s3a://b/p", SPARK="spark.jars: /opt/hadoop-aws-3.4.2.jar") == {}


def test_only_the_paths_of_selected_models_count(tmp_path: Path) -> None:
    """The storage of the target always does."""
    assert needed(tmp_path, ["model.p.other"], SOURCE="s3a://b/in") == {}
    assert set(needed(tmp_path, ["model.p.other"], STORAGE="s3a://b/p")) == {"s3"}
