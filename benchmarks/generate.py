"""Generates a benchmark project of many models for sqlstream and for dbt, with the same SQL.

The models form chains of ten, and each has one of three shapes (`shapes/`), all with many CTEs. Each chain reads its
own source table and ends in a sink. dbt gets the same text, because `dbt parse` does not read SQL.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHAIN = 10
"""Models in a chain."""

SHAPES = ("classify", "enrich", "summarise")
"""The shapes in their order in a chain."""

COLUMNS = (
    ("event_time", "timestamp"),
    ("device_id", "string"),
    ("region", "string"),
    ("kind", "string"),
    ("amount", "double"),
    ("quantity", "int"),
)

REGIONS = (("region", "string"), ("country", "string"), ("rate", "double"))

_MACRO = "{% macro converted(amount, factor) %}cast({{ amount }} * {{ factor }} as double){% endmacro %}\n"
_SEED = "device_id,maker,factor\nd1,acme,1.5\nd2,apex,0.5\n"


@dataclass(frozen=True)
class Chain:
    """One chain: its number, from 1, and its number of models."""

    number: int
    length: int

    @property
    def folder(self) -> str:
        """The chain's folder in models/."""
        return f"chain_{self.number:04}"

    def model(self, position: int) -> str:
        """Returns the name of the model at `position`, from 1."""
        return f"c{self.number:04}_{SHAPES[(position - 1) % len(SHAPES)]}_{position:02}"

    def path(self, position: int) -> str:
        """Returns the file of the model at `position`."""
        return f"models/{self.folder}/{self.model(position)}.sql"

    def sql(self, position: int) -> str:
        """Returns the SQL of the model at `position`, which reads the previous model, or the source."""
        shape = SHAPES[(position - 1) % len(SHAPES)]
        text = (Path(__file__).parent / "shapes" / f"{shape}.sql").read_text(encoding="utf-8")
        if position == 1:
            text = text.replace("select event_time", "select /*+ WATERMARK(event_time, '10 minutes') */ event_time", 1)
            text = text.replace("{{ ref('INPUT') }}", f"{{{{ source('events', '{self.folder}') }}}}")
        text = text.replace("INPUT", self.model(position - 1)).replace("NUMBER", str(self.number + position))
        return "{{ config(sink='warehouse') }}\n" + text if position == self.length else text


def chains(models: int) -> tuple[Chain, ...]:
    """Returns the chains of a project with `models` models."""
    full, rest = divmod(models, CHAIN)
    lengths = [CHAIN] * full + [rest] * bool(rest)
    return tuple(Chain(number, length) for number, length in enumerate(lengths, 1))


def write_sqlstream_project(folder: Path, models: int) -> None:
    """Writes a sqlstream project with `models` models into `folder`."""
    project = "name: bench\nversion: 1.0.0\ntargets:\n  local: {master: 'local[*]', storage: data}\n"
    _write(folder / "project.yml", project + "vars: {longest_kind: 40}\n")
    _write(folder / "sources.yml", _sources(models, with_reader=True))
    _write(
        folder / "sinks.yml", 'version: 2\nsinks:\n  - {name: warehouse, format: parquet, path: "{{ model.name }}"}\n'
    )
    _write_common(folder, models)


def write_dbt_project(folder: Path, models: int) -> None:
    """Writes a dbt project with the same models into `folder`, with a profile for DuckDB."""
    project = "name: bench\nversion: 1.0.0\nprofile: bench\nflags: {send_anonymous_usage_stats: false}\n"
    _write(folder / "dbt_project.yml", project + "vars: {longest_kind: 40}\n")
    profile = "bench:\n  target: local\n  outputs:\n    local: {type: duckdb, path: bench.duckdb}\n"
    _write(folder / "profiles.yml", profile)
    _write(folder / "models" / "sources.yml", _sources(models, with_reader=False))
    _write_common(folder, models)


def edit_a_model(folder: Path, models: int, edition: int) -> None:
    """Changes the query of one model in the middle of a chain. Each `edition` has another text."""
    chain = chains(models)[models // CHAIN // 2]
    position = (chain.length + 1) // 2
    text = chain.sql(position).replace("where ", f"where {edition} < {edition + 1} and ", 1)
    _write(folder / chain.path(position), text)


def _write_common(folder: Path, models: int) -> None:
    _write(folder / "macros" / "converted.sql", _MACRO)
    _write(folder / "seeds" / "devices.csv", _SEED)
    types = "{name: device_id, data_type: string}, {name: maker, data_type: string}, {name: factor, data_type: double}"
    _write(folder / "seeds" / "seeds.yml", f"version: 2\nseeds:\n  - {{name: devices, columns: [{types}]}}\n")
    for chain in chains(models):
        _write(folder / "models" / chain.folder / "models.yml", _properties(chain))
        for position in range(1, chain.length + 1):
            _write(folder / chain.path(position), chain.sql(position))


def _properties(chain: Chain) -> str:
    return "version: 2\nmodels:\n" + "".join(
        f"  - name: {chain.model(position)}\n"
        f"    description: Step {position} of {chain.folder}, which reads the one before it.\n"
        "    columns:\n"
        "      - {name: event_time, description: When it happened}\n"
        "      - {name: device_id, description: The device it comes from}\n"
        for position in range(1, chain.length + 1)
    )


def _sources(models: int, *, with_reader: bool) -> str:
    """Returns the sources. Only sqlstream's tables declare how to read them."""
    events = [_table(chain.folder, COLUMNS, "stream", with_reader=with_reader) for chain in chains(models)]
    regions = _table("regions", REGIONS, "batch", with_reader=with_reader)
    return (
        "version: 2\nsources:\n"
        f"  - name: events\n    tables:\n{''.join(events)}"
        f"  - name: reference\n    tables:\n{regions}"
    )


def _table(name: str, columns: tuple[tuple[str, str], ...], mode: str, *, with_reader: bool) -> str:
    return textwrap.indent("\n".join(_table_lines(name, columns, mode, with_reader=with_reader)) + "\n", " " * 6)


def _table_lines(name: str, columns: tuple[tuple[str, str], ...], mode: str, *, with_reader: bool) -> Iterator[str]:
    yield f"- name: {name}"
    yield f"  description: The rows of {name}, as they arrive."
    if with_reader:
        yield from ("  format: json", f"  path: data/{name}", f"  mode: {mode}")
    yield "  columns:"
    yield from (f"    - {{name: {column}, data_type: {kind}}}" for column, kind in columns)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
