"""Columns as YAML to copy into a project."""

from __future__ import annotations

import json

import pytest

from sqlstream.app.source.source_schema import columns_json, columns_yaml
from sqlstream.project.yaml import parse_yaml, plain
from sqlstream.spark.reading.infer import InferredColumn, SourceColumns


@pytest.mark.parametrize(
    "text",
    ["id", "n", "on", "123", "1e3", "a b", "a: b", "a #b", "#a", "größe", "-", "a,b", "it's", '"q"', "x:", "null"],
)
def test_names_and_descriptions_are_read_back_unchanged(text: str) -> None:
    """Every name and description is read back unchanged, even if it looks like another YAML value."""
    column = InferredColumn(text, "struct<`a b`:decimal(10,2),c:map<string,array<int>>>", text, ("a note",))
    yaml = columns_yaml(SourceColumns("s.t", "json", (column,), 1, 0, 1, is_fixed=False, replaces=None, indent=4))

    assert plain(parse_yaml(yaml, "x.yml")) == {
        "columns": [{"name": text, "data_type": column.data_type, "description": text}]
    }
    assert all(line.startswith("    ") for line in yaml.splitlines())


def test_the_number_of_sampled_files_is_shown() -> None:
    """The output gives the number of files, of sampled files and of empty files; in JSON as numbers."""
    column = InferredColumn("id", "int", "", ("a note",))
    found = SourceColumns("s.t", "json", (column,), 10, 2, 1204, is_fixed=False, replaces=None, indent=0)

    assert columns_yaml(found).startswith("# s.t: read 10 of 1,204 files, 2 of them empty\n")
    parsed = json.loads(columns_json(found))
    assert parsed["files"] == {"total": 1204, "looked_at": 10, "empty": 2}
    assert parsed["columns"] == [{"name": "id", "data_type": "int", "description": "", "notes": ["a note"]}]
