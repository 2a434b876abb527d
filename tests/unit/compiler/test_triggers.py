"""A continuous trigger allows only projections and filters."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - {name: orders, format: kafka, options: {subscribe: orders, kafka.bootstrap.servers: 'kafka:9092'}}
""",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/letters.sql": """{{ config(sink='out', trigger={'continuous': '1 second'}) }}
select o.key, x.letter
from {{ source('shop', 'orders') }} o,
  lateral (select explode(array('a', 'b')) as letter) x
""",
}


def test_a_lateral_subquery_is_refused(tmp_path: Path) -> None:
    """A lateral subquery is refused like a join."""
    (tmp_path / "models").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    with pytest.raises(FindingsError) as caught:
        compile_models(ProjectRequest(tmp_path))

    found = [(finding.code, finding.location and finding.location.line) for finding in caught.value.findings]
    assert found == [("continuous-trigger", 4)]
