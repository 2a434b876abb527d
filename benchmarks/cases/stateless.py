"""Forty stateless cases of ten models, as a sqlstream project and as a dbt project on DuckDB."""

from __future__ import annotations

from pathlib import Path

MODELS = 10
CASES_OF_A_MODEL = 4

SQL = "select id, upper(name) as name, value * {number} as value\nfrom {{{{ {input} }}}}\nwhere value > {number}\n"


def _tests(number: int, input_text: str) -> str:
    cases = []
    for case in range(CASES_OF_A_MODEL):
        value = number + case + 1
        cases.append(
            f"  - name: case_{number}_{case}\n    model: m{number}\n    given:\n      - input: {input_text}\n"
            f"        rows:\n          - {{id: 1, name: a, value: {value}}}\n"
            f"          - {{id: 2, name: b, value: {number}}}\n"
            f"    expect:\n      rows:\n        - {{id: 1, name: A, value: {value * number}}}\n"
        )
    return "version: 2\nunit_tests:\n" + "".join(cases)


def write_sqlstream(folder: Path) -> None:
    """Writes the sqlstream project."""
    (folder / "project.yml").write_text('name: bench\ntargets: {local: {master: "local[*]"}}\n')
    (folder / "sinks.yml").write_text("version: 2\nsinks: [{name: out, format: console}]\n")
    columns = '"id int, name string, value int"'
    (folder / "sources.yml").write_text(
        f"version: 2\nsources:\n  - name: s\n    tables: [{{name: items, format: json, path: d, schema: {columns}}}]\n"
    )
    (folder / "models").mkdir()
    for number in range(1, MODELS + 1):
        sql = SQL.format(number=number, input="source('s', 'items')")
        (folder / "models" / f"m{number}.sql").write_text("{{ config(sink='out') }}\n" + sql)
        (folder / "models" / f"m{number}.yml").write_text(_tests(number, "source('s', 'items')"))


def write_dbt(folder: Path) -> None:
    """Writes the dbt project. Its first run creates the input table."""
    (folder / "dbt_project.yml").write_text(
        "name: bench\nversion: '1.0'\nprofile: bench\nmodel-paths: [models]\nmodels: {bench: {+materialized: view}}\n"
    )
    (folder / "profiles.yml").write_text(
        "bench: {target: dev, outputs: {dev: {type: duckdb, path: bench.duckdb, threads: 2}}}\n"
    )
    (folder / "models").mkdir()
    (folder / "models" / "items.sql").write_text("select 1 as id, 'a' as name, 1 as value\n")
    for number in range(1, MODELS + 1):
        (folder / "models" / f"m{number}.sql").write_text(SQL.format(number=number, input="ref('items')"))
        (folder / "models" / f"m{number}.yml").write_text(_tests(number, "ref('items')"))
