"""Writes tests/unit/compiler/definitions.yml and states.yml: dbt's results for selectors.yml and for `state:`.

Run it manually, not in CI, with the Python of make_selector_table.py:

    /tmp/dbtvenv/bin/python -m tests.tools.make_selector_definitions

Each definition is written to selectors.yml of tests/projects/selection as a dbt project, and selected with --selector.
Each change is made in the project after saving its manifest, and each `state:` is selected with --state.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from tests.tools.make_selector_table import PROJECT, TESTS, Case, generate, outcome, parse, write_yaml

FOLDER = TESTS / "unit" / "compiler"

DEFINITIONS = """
- orders
- tag:core
- +orders_by_hour
- 1+orders_by_hour+
- '@customers'
- orders,tag:core
- orders customers
- 'tag:core tag:static'
- nothing
- unknown:x
- '@orders+'
- ''
- [orders]
- 5
- {tag: core}
- {fqn: '*'}
- {path: models/shop/marts}
- {config.sink: warehouse}
- {config.enabled: true}
- {config.enabled: 'true'}
- {config.meta.pager: true}
- {resource_type: seed}
- {unknown: x}
- {tag: [core, static]}
- {tag: core, path: models}
- {method: tag, value: core}
- {method: tag, value: core+}
- {method: fqn, value: orders, children: true}
- {method: fqn, value: orders, children: true, children_depth: 1}
- {method: fqn, value: orders, children: true, children_depth: 2}
- {method: fqn, value: orders_by_hour, parents: true}
- {method: fqn, value: orders_by_hour, parents: true, parents_depth: 1}
- {method: fqn, value: orders_by_hour, parents: true, children: true}
- {method: fqn, value: orders, parents: false, children: false}
- {method: fqn, value: customers, childrens_parents: true}
- {method: fqn, value: orders, childrens_parents: true, children: true}
- {method: config.trigger, value: 10 seconds}
- {method: config.meta.owner, value: secops, indirect_selection: cautious}
- {method: tag, value: core, exclude: [orders]}
- {method: tag, value: core, exclude: [{tag: staging}, orders_by_hour]}
- {method: tag, value: core, exclude: ['@customers']}
- {method: fqn, value: '*', exclude: [{union: [{tag: core}, {tag: security}]}]}
- {method: unknown, value: x}
- {method: tag}
- {value: core}
- {union: [orders, customers]}
- {union: [{tag: core}, {method: fqn, value: customers, children: true}]}
- {union: [orders, {intersection: [{tag: core}, {config.sink: warehouse}]}]}
- {union: [{tag: core}, {exclude: [orders]}]}
- {union: [{exclude: [orders]}, {tag: core}]}
- {union: [{tag: core}, {exclude: [orders]}, {exclude: [orders_by_hour]}]}
- {union: [{tag: core}, {exclude: [{intersection: [{tag: core}, {tag: staging}]}]}]}
- {union: [nothing, orders]}
- {union: [unknown:x, orders]}
- {union: orders}
- {union: [5]}
- {union: [orders], intersection: [orders]}
- {union: [orders], exclude: [orders]}
- {intersection: [{tag: core}, {config.sink: warehouse}]}
- {intersection: [orders+, +big_orders]}
- {intersection: [orders+, {exclude: [{tag: core}]}]}
- {intersection: [{union: [{tag: core}, {tag: static}]}, {resource_type: seed}]}
- {intersection: [orders, customers]}
- {exclude: [orders]}
- {method: selector, value: core}
- {union: [{method: selector, value: core}, customers]}
- {intersection: [{method: selector, value: core}, {exclude: [orders]}]}
- {method: selector, value: nowhere}
"""
"""Definitions. Each is written to selectors.yml after `OTHER`."""

OTHER = {"name": "core", "definition": {"tag": "core"}}

BASE = {
    "macros/loud.sql": "{% macro loud(column) %}upper({{ quiet(column) }}){% endmacro %}\n",
    "macros/quiet.sql": "{% macro quiet(column) %}trim({{ column }}){% endmacro %}\n",
    "macros/unused.sql": "{% macro unused() %}1{% endmacro %}\n",
    "models/shop/shouted.sql": "select {{ loud('region_name') }} as region from {{ ref('regions_2') }}\n",
}
"""Additional files of the project when its manifest is saved, because the project has no macros."""

CHANGES: dict[str, dict[str, list[str] | str | None]] = {
    "nothing": {},
    "another column": {"models/shop/orders.sql": ["order_id,", "order_id, 1 as one,"]},
    "a comment": {"models/shop/orders.sql": ["select", "-- all of them\nselect"]},
    "a comment of Jinja": {"models/shop/orders.sql": ["select", "{# all of them #}select"]},
    "white space": {"models/shop/orders.sql": ["select", "select\n   "]},
    "a new model": {"models/shop/newest.sql": "select * from {{ ref('orders') }}\n"},
    "a model that is gone": {"models/flows.sql": None, "models/alerts.sql": None},
    "a model in another folder": {
        "models/shop/repeat_orders.sql": None,
        "models/reporting/repeat_orders.sql": "=models/shop/repeat_orders.sql",
    },
    "a model under another name": {"models/flows.sql": None, "models/flow_logs.sql": "=models/flows.sql"},
    "config() of a model": {"models/shop/orders_by_hour.sql": ["'1 minute'", "'2 minutes'"]},
    "a folder's configuration": {"project.yml": ["+trigger: 10 seconds", "+trigger: 20 seconds"]},
    "a folder's tags": {"project.yml": ["+tags: [alerting]", "+tags: [alerting, night]"]},
    "a folder's meta": {"project.yml": ["owner: shop_team", "owner: till_team"]},
    "a folder's configuration in another form": {"project.yml": ["+output_mode: append", "+output_mode: 'append'"]},
    "a row of a seed": {"seeds/customers.csv": ["\n", "\n3,Alan,20\n"]},
    "a source's description": {"sources.yml": ["AWS audit and network logs", "logs"]},
    "a source's tags": {"sources.yml": ["tags: [raw, aws]", "tags: [raw]"]},
    "a new source": {
        "sources.yml": ["tables:", "tables:\n      - {name: fresh, format: json, path: in, schema: a int}"]
    },
    "a new exposure": {
        "models/reporting/_more.yml": "exposures: [{name: fresh, type: ml, owner: {name: a}, depends_on: [ref('flows')]}]\n"
    },
    "an exposure's description": {"models/reporting/_reporting.yml": ["for the management", "for all"]},
    "an exposure's label": {"models/reporting/_reporting.yml": ["The weekly report", "Weekly"]},
    "an exposure's owner": {"models/reporting/_reporting.yml": ["risk@", "fraud@"]},
    "an exposure's url": {"models/reporting/_reporting.yml": ["weekly\n    desc", "weeks\n    desc"]},
    "an exposure's models": {"models/reporting/_reporting.yml": ["ref('big_orders'), ", ""]},
    "an exposure's models in another order": {
        "models/reporting/_reporting.yml": [
            "ref('orders_by_hour'), ref('big_orders')",
            "ref('big_orders'), ref('orders_by_hour')",
        ]
    },
    "an exposure's tags": {"models/reporting/_reporting.yml": ["tags: [core]", "tags: [core, board]"]},
    "an exposure's config.tags": {"models/reporting/_reporting.yml": ["tags: [weekly]", "tags: [monthly]"]},
    "an exposure's meta": {"models/reporting/_reporting.yml": ["meta: {owner: growth}", "meta: {owner: board}"]},
    "an exposure's config.meta": {"models/reporting/_reporting.yml": ["pii: true", "pii: false"]},
    "an exposure that is disabled": {
        "models/reporting/_reporting.yml": ["config:\n      tags", "config:\n      enabled: false\n      tags"]
    },
    "the tags of a folder of exposures": {"project.yml": ["+tags: [bi]", "+tags: [tables]"]},
    "the meta of a folder of exposures": {"project.yml": ["owner: reporting_team", "owner: board"]},
    "a macro that a model uses": {"macros/loud.sql": ["upper(", "lower("]},
    "a macro that a macro uses": {"macros/quiet.sql": ["trim(", "rtrim("]},
    "a macro that no model uses": {"macros/unused.sql": ["1", "2"]},
    "a new macro": {"macros/newest.sql": "{% macro newest() %}1{% endmacro %}\n"},
    "a macro in another file": {"macros/unused.sql": None, "macros/moved.sql": "=macros/unused.sql"},
    "a comment of SQL in a macro": {"macros/loud.sql": ["upper(", "upper(/* all of it */ "]},
}
"""Changes by name. For each file: a new text, `=` and a file to copy, None to delete it, or [old, new] to replace."""

STATES = ("new", "old", "modified", "unmodified", "modified.body", "modified.configs", "modified.macros")


def definitions(folder: Path) -> list[dict[str, Any]]:
    """Returns each definition with the nodes that dbt selects, or with `error`."""
    generate(folder)
    os.chdir(folder)
    manifest = parse()
    found = []
    for definition in yaml.safe_load(DEFINITIONS):
        write_yaml(folder / "selectors.yml", {"selectors": [OTHER, {"name": "s", "definition": definition}]})
        found.append({"definition": definition, **outcome(manifest, Case(), "--selector", "s")})
    return found


def changed(project: Path, changes: dict[str, list[str] | str | None]) -> None:
    """Changes the files of a project."""
    texts = {name: (project / name).read_text() for name in _read_by(changes)}
    for name, change in changes.items():
        path = project / name
        if change is None:
            path.unlink()
        elif isinstance(change, list):
            path.write_text(texts[name].replace(change[0], change[1], 1))
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[change[1:]] if change.startswith("=") else change)


def _read_by(changes: dict[str, list[str] | str | None]) -> list[str]:
    copied = [change[1:] for change in changes.values() if isinstance(change, str) and change.startswith("=")]
    return copied + [name for name, change in changes.items() if isinstance(change, list)]


def states(folder: Path) -> list[dict[str, Any]]:
    """Returns each change with the nodes that dbt selects for every `state:`, and for `state:modified+`."""
    base = folder / "base"
    shutil.copytree(PROJECT, base)
    changed(base, dict(BASE))
    saved = folder / "saved"
    _parsed(folder / "dbt_base", base, "--target-path", str(saved))
    found = []
    for index, (name, changes) in enumerate(CHANGES.items()):
        project = folder / f"project{index}"
        shutil.copytree(base, project)
        changed(project, changes)
        manifest = _parsed(folder / f"dbt{index}", project)
        words = [*(f"state:{word}" for word in STATES), "state:modified+"]
        answers = {word: outcome(manifest, Case((word,)), "--state", str(saved))["expect"] for word in words}
        found.append({"change": name, "files": changes, "expect": answers})
    return found


def _parsed(folder: Path, project: Path, *arguments: str) -> Any:
    generate(folder, project)
    os.chdir(folder)
    return parse(*arguments)


def header(text: str) -> str:
    """Returns the comment at the top of a table."""
    tools = f"dbt-core {version('dbt-core')}, dbt-duckdb {version('dbt-duckdb')}, Python {platform.python_version()}"
    return f"# {text}\n# Generated by tests/tools/make_selector_definitions.py: do not edit by hand.\n# Generated with {tools}.\n\n"


def write(name: str, text: str, value: object) -> None:
    """Writes a table."""
    dumped = yaml.safe_dump(value, sort_keys=False, width=110, default_flow_style=None)
    (FOLDER / name).write_text(header(text) + dumped, encoding="utf-8")


def main() -> None:
    """Writes both tables."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        found, compared = definitions(Path(first)), states(Path(second))
        os.chdir(TESTS)
    write("definitions.yml", "Definitions for selectors.yml, each with the nodes that dbt selects.", found)
    write(
        "states.yml",
        "Changes to tests/projects/selection, each with the nodes that dbt selects for every `state:`.",
        {
            "base": BASE,
            "changes": compared,
        },
    )
    print(f"{len(found)} definitions, {len(compared)} changes in {FOLDER}")


if __name__ == "__main__":
    main()
