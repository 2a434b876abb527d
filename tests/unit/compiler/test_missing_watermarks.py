"""The fix for a missing watermark contains a hint that can be copied to the given place and removes the finding."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.errors import Finding

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - {name: orders, format: json, path: in, schema: 'id int, kind string, ordered_at timestamp'}
      - {name: payments, format: json, path: in, schema: 'id int, paid_at timestamp'}
      - {name: notes, format: json, path: in, schema: 'id int, text string'}
""",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/paid.sql": "select id, paid_at from {{ source('shop', 'payments') }} where id > 0",
    "models/renamed.sql": "select id, paid_at + interval 1 day as due from {{ source('shop', 'payments') }}",
}
HINT = re.compile(r"(/\*\+ WATERMARK.*? \*/) after SELECT(?: in (models/\w+\.sql))?")


def findings(root: Path, model: str, mode: str, files: dict[str, str]) -> list[Finding]:
    """Returns the findings in the model `asked`, whose SQL is `model`."""
    asked = f"{{{{ config(sink='out', output_mode='{mode}', {CONFIG.get(model, '')}) }}}}\n{model}"
    for name, text in {**FILES, "models/asked.sql": asked, **files}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    try:
        found = compile_models(ProjectRequest(root)).findings
    except FindingsError as error:
        found = error.findings
    return [item for item in found if item.location and item.location.path == "models/asked.sql"]


ORDERS, PAYMENTS, NOTES = (f"{{{{ source('shop', '{name}') }}}}" for name in ("orders", "payments", "notes"))
DEDUPLICATED = f"select id, ordered_at from {ORDERS}"
CONFIG = {DEDUPLICATED: "deduplicate=['id', 'ordered_at']"}
BOUND = "a.id = p.id and p.paid_at between a.ordered_at and a.ordered_at + interval 1 hour"


@pytest.mark.parametrize(
    ("mode", "model"),
    [
        ("append", f"select window(ordered_at, '1 hour') as w, count(*) as n from {ORDERS} group by 1"),
        ("update", f"select window(ordered_at, '1 hour') as w, count(*) as n from {ORDERS} group by 1"),
        ("append", f"select a.id from {ORDERS} a left join {PAYMENTS} p on {BOUND}"),
        ("append", f"select a.id from {ORDERS} a full join {PAYMENTS} p on {BOUND}"),
        ("append", f"select a.id from {ORDERS} a join {PAYMENTS} p on {BOUND}"),
        ("append", f"select a.id from {ORDERS} a join {{{{ ref('paid') }}}} p on {BOUND}"),
        ("append", f"with p as (select * from {PAYMENTS}) select a.id from {ORDERS} a left join p on {BOUND}"),
        ("append", DEDUPLICATED),
    ],
)
def test_a_hint_in_the_select_itself(tmp_path: Path, mode: str, model: str) -> None:
    """The hint for an aggregation, join or deduplication uses the model's own column names and removes the finding."""
    (missing,) = findings(tmp_path, model, mode, {})
    hint, elsewhere = HINT.search(missing.fix).groups()  # type: ignore[union-attr]
    head, select, rest = model.rpartition("select ") if "with" not in model else model.rpartition("select a")

    with_hint = f"{head}{select.replace('select ', f'select {hint} ')}{rest}"

    assert elsewhere is None
    assert missing.code not in [item.code for item in findings(tmp_path, with_config(model, with_hint), mode, {})]


def with_config(model: str, with_hint: str) -> str:
    """Returns the corrected model, which gets the configuration of the original model."""
    CONFIG[with_hint] = CONFIG.get(model, "")
    return with_hint


def test_a_hint_in_the_model_upstream(tmp_path: Path) -> None:
    """If an upstream model passes the event time on unchanged, the fix also offers a hint there."""
    model = f"select a.id from {ORDERS} a left join {{{{ ref('paid') }}}} p on {BOUND}"

    (missing,) = findings(tmp_path, model, "append", {})
    (_, (hint, place)) = HINT.findall(missing.fix)

    assert place == "models/paid.sql"
    assert "for every query that reads it" in missing.fix
    upstream = {place: FILES[place].replace("select", f"select {hint}")}
    assert missing.code not in [item.code for item in findings(tmp_path, model, "append", upstream)]


def test_no_hint_without_a_timestamp_column(tmp_path: Path) -> None:
    """Without a timestamp column the fix offers no hint and names the relation that needs a watermark."""
    model = f"select a.id from {ORDERS} a left join {NOTES} p on a.id = p.id"

    (missing,) = findings(tmp_path, model, "append", {})

    assert missing.fix.startswith("give `p` a watermark, and add a condition such as")


def test_a_computed_time_gets_no_hint_upstream(tmp_path: Path) -> None:
    """A time that the upstream model computes gets a hint only in the query that reads it."""
    bound = "a.id = p.id and p.due between a.ordered_at and a.ordered_at + interval 1 hour"
    model = f"select a.id from {ORDERS} a left join {{{{ ref('renamed') }}}} p on {bound}"

    (missing,) = findings(tmp_path, model, "append", {})

    assert HINT.findall(missing.fix) == [("/*+ WATERMARK(p.due, '10 minutes') */", "")]


def test_the_hint_in_a_join_names_the_relation(tmp_path: Path) -> None:
    """A hint in a join names the relation, because both sides may have a column with this name."""
    model = f"select a.kind, count(*) as n from {ORDERS} a join {NOTES} p on a.id = p.id group by a.kind"

    (hint, _), *_ = HINT.findall(findings(tmp_path, model, "append", {})[0].fix)

    assert hint == "/*+ WATERMARK(a.ordered_at, '10 minutes') */"
