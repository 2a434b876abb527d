"""Rows that sqlstream writes into unit tests (`--record`, `--update`, `replay --to-test`) are read as the same rows."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sqlstream.app.test.case_file import RowMasker
from sqlstream.compiler.render.yaml import make_yaml_renderer
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.templates import UNIT_TEST_RULES, render_mapping
from sqlstream.project.unit_tests.fixtures import Rows
from sqlstream.project.yaml import YamlMapping, YamlSequence, parse_yaml
from sqlstream.project.yaml.writing import flow_text
from sqlstream.spark.reading.memory_streams import RowMaker
from sqlstream.spark.reading.plain_rows import columns_of, first_rows
from sqlstream.spark.secrets import Secrets
from sqlstream.testing.fixture_values import UnwritableError
from sqlstream.testing.typed_rows import TypedRows
from tests.support.odd_values import VALUES, exact, rows_of

RENDER = make_yaml_renderer({})({}, "dev")


def read(text: str) -> Rows:
    """Returns the rows of a unit test with this text."""
    findings: list[Finding] = []
    rendered = render_mapping(parse_yaml(text, "t.yml"), RENDER, UNIT_TEST_RULES, findings)
    rows = rendered.get("rows")
    assert not findings
    assert isinstance(rows, YamlSequence)
    return Rows(Location("t.yml"), tuple(row for row in rows.items if isinstance(row, YamlMapping)))


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC"])
def test_each_value_is_read_as_it_was_written(spark: SparkSession, zone: str) -> None:
    """Every type keeps its odd values, in every time zone: nulls, blanks, templates, digits, hours that occur twice."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    frame = rows_of(spark, *VALUES)
    masker, columns = RowMasker(Secrets({})), columns_of(frame)

    shown = first_rows(frame, 1000)
    lines = (f"  - {flow_text(masker.row(row, columns, ()))}" for row in shown)
    back, _ = TypedRows(spark, "the rows").frame([read("\n".join(["rows:", *lines]))], frame.schema)

    assert exact(back, *VALUES) == exact(frame, *VALUES)
    assert RowMaker(spark).rows(frame) == list(shown)


@pytest.mark.parametrize(
    "value", ["map(X'00FF', 1)", "map(array(1), 2)", "parse_json('1.00000000000000000000000000001')"]
)
def test_a_value_that_yaml_cannot_express_is_refused(spark: SparkSession, value: str) -> None:
    """A row with keys or numbers that would be read as others is not written."""
    frame = spark.sql(f"select {value} as v")

    with pytest.raises(UnwritableError):
        RowMasker(Secrets({})).row(first_rows(frame, 1)[0], columns_of(frame), ())
