"""Helpers for the cache tests: a project whose templates read many inputs, and all that compiling leaves behind."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlstream.app.compile.compile import compile_models
from sqlstream.app.loading.logs import TEMPLATE_LOGGER
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import FindingsError

FILES = {
    "project.yml": """
name: shop
version: 1.0.0
vars: {least: 3, path: in}
targets:
  local: {master: 'local[*]', storage: data}
  other: {master: 'local[*]', storage: data, vars: {least: 4}}
models: {late: {+tags: [late]}}
""",
    "sources.yml": """
version: 2
sources:
  - name: web
    tables:
      - name: clicks
        format: json
        path: "{{ var('path') }}/clicks"
        columns:
          - {name: at, data_type: timestamp}
          - {name: user_id, data_type: string}
          - {name: price, data_type: double}
      - {name: users, format: json, path: users, mode: batch, schema: "user_id string, country string"}
""",
    "sinks.yml": 'version: 2\nsinks:\n  - {name: files, format: parquet, path: "{{ model.name }}"}\n',
    "seeds/countries.csv": "country,name\nat,Austria\n",
    "macros/money.sql": "{% macro cents(c) %}cast({{ c }} * 100 as bigint){% endmacro %}\n",
    "macros/more.sql": "{% macro least() %}{{ cents(var('least')) }}{% endmacro %}\n",
    "models/m1.sql": "select /*+ WATERMARK(at, '10 minutes') */ at, user_id, price from {{ source('web', 'clicks') }}\n",
    "models/m2.sql": """with a as (select * from {{ ref('m1') }})
select at, user_id, {{ cents('price') }} as cents, '{{ env_var('REGION', 'none') }}' as region,
    '{{ config.get('trigger', 'none') }}' as how, '{{ model.description }}' as what, '{{ target.name }}' as place from a
""",
    "models/m3.sql": "select m.*, u.country from {{ ref('m2') }} m join {{ source('web', 'users') }} u using (user_id)\n",
    "models/late/m4.sql": """{{ config(sink='files') }}
select window.start as hour, country, count(*) as n from {{ ref('m3') }} group by window(at, '1 hour'), country
""",
    "models/late/m5.sql": """{{ config(sink='files') }}
select m.at, m.cents, c.name from {{ ref('m3') }} m left join {{ ref('countries') }} c on m.country = c.country
""",
}


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Writes files and creates the folders they need."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@dataclass
class Messages(logging.Handler):
    """Collects the messages that templates log."""

    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one message."""
        self.seen.append(f"{record.levelname} {record.getMessage()}")

    __hash__ = logging.Handler.__hash__


def outcome(request: ProjectRequest, *, partial: bool) -> dict[str, Any]:
    """Returns everything that a command leaves behind, without times and ids."""
    messages, target = Messages(), request.folder / "target"
    (target / "manifest.json").unlink(missing_ok=True)
    logger = logging.getLogger(TEMPLATE_LOGGER)
    logger.addHandler(messages)
    try:
        compiled = compile_models(replace(request, partial_parse=partial))
    except FindingsError as error:
        return {"findings": error.findings, "log": messages.seen}
    finally:
        logger.removeHandler(messages)
    manifest = json.loads((target / "manifest.json").read_text())
    del manifest["metadata"]["generated_at"], manifest["metadata"]["invocation_id"]
    return {
        "findings": compiled.findings,
        "manifest": manifest,
        "models": compiled.models,
        "columns": compiled.loaded.compiled.columns,
        "written": {model.name: (target / model.compiled_path).read_text() for model in compiled.models},
        "log": messages.seen,
    }
