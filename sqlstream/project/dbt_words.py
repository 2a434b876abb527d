"""Words of dbt that sqlstream does not have, with replacements for the fix of a finding."""

from __future__ import annotations

_QUERIES = "remove it: templates are rendered before Spark starts; declare the input as a source or a seed"
_PACKAGES = "sqlstream has no dbt packages; copy the macro to macros/, or use a function of Spark SQL"
_RELATION = "remove it: a model is a view with the name of its file, and its sink defines where its rows go"
_FILTER = "remove it, with its {% if %}: a streaming query reads only new rows"
_HOOKS = "remove it: sqlstream has no hooks; run other SQL before or after `sqlstream run`"
_ROWS = "remove it: the `output_mode` of the model defines which rows a batch writes (append, update or complete)"

TEMPLATE_NAMES = {
    "is_incremental": _FILTER,
    "should_full_refresh": _FILTER,
    **dict.fromkeys(("adapter", "api", "graph", "load_result", "run_query", "statement", "store_result"), _QUERIES),
    **dict.fromkeys(("codegen", "dbt", "dbt_date", "dbt_expectations", "dbt_utils"), _PACKAGES),
    **dict.fromkeys(("database", "schema"), _RELATION),
    "doc": "remove it: write descriptions as plain text in YAML",
    "flags": "remove it; templates cannot read command-line options other than --vars: var('name')",
    "modules": "remove it; `run_started_at` is the time of the run, and SQL can compute dates",
    "print": "use log(message, info=true)",
    "set": "use a list instead; Jinja's |unique filter removes duplicate values",
    "zip": "loop over range() with an index",
}
"""The replacement for a name in a dbt template."""

TEMPLATE_TAGS = {
    "snapshot": "remove the block: sqlstream has no snapshots; read the changes as a stream and write them to a sink",
    "materialization": "remove the block: a model with a sink is a query that writes to it, and one without is a view",
    "docs": "move the block to a Markdown file (.md) in models/ or macros/; descriptions include it with doc()",
}
"""The replacement for a block of a dbt template."""

_CONTRACT = "move it to the `config` of a model; a seed has the columns of its file"
_CATALOG = "remove it: `path` or `table` of a source or sink defines where its rows are"
_TESTS = "use `data_tests:` of a model or its columns, which test its rows while they flow"
_TESTS_OF_TABLES = "use `data_tests:` of a table of the source, or of its columns, which test its rows while they flow"
_CONSTRAINTS = "move it to the properties of a model, or of one of its columns"
_NO_GROUPS = "remove it: only models have an owner and an access; every model can read every seed"
_PATHS = "remove it: the folder names are fixed (models/, seeds/, macros/, python/, tests/models/, target/)"
_LOADED_AT = "use `loaded_at_field`, which can be any SQL expression over the columns: sqlstream takes its maximum"
_TARGETS = "remove it: define connections as `targets:` in project.yml"

CONFIG_KEYS = {
    **dict.fromkeys(("alias", "database", "schema", "location_root", "file_format", "quoting"), _RELATION),
    **dict.fromkeys(("incremental_strategy", "merge_update_columns", "merge_exclude_columns"), _ROWS),
    **dict.fromkeys(("incremental_predicates", "event_time", "batch_size", "begin", "lookback"), _FILTER),
    **dict.fromkeys(("pre_hook", "post_hook", "pre-hook", "post-hook", "sql_header"), _HOOKS),
    **dict.fromkeys(("grants", "persist_docs", "tblproperties", "clustered_by", "buckets"), _CATALOG),
    **dict.fromkeys(("tests", "data_tests", "severity"), _TESTS),
    "full_refresh": "remove it: `sqlstream run --full-refresh` restarts a query",
    "on_schema_change": "remove it: a run rejects a change that does not fit the checkpoint, and shows what to do",
    "docs": "remove it: use `description` and `meta`",
}
"""The replacement for a configuration key of a dbt model or seed."""

_SEED_KEYS = {
    "contract": _CONTRACT,
    "constraints": _CONSTRAINTS,
    **dict.fromkeys(
        ("deprecation_date", "versions", "latest_version"), "remove it: only models have versions and deprecation dates"
    ),
    **dict.fromkeys(("access", "group"), _NO_GROUPS),
    "quote_columns": "remove it: columns have the names in the header; quote unusual ones with backquotes in SQL",
    "materialized": "remove it: a seed is a static table, which each query reads from its file",
    "column_types": "declare the types in `columns:` of the seed, each with a data_type",
}

_PROPERTY_KEYS = {
    **{key: hint for key, hint in CONFIG_KEYS.items() if key != "data_tests"},
    "time_spine": "remove it: sqlstream has no semantic layer; compute the metric in a model",
}

_SOURCE_KEYS = {
    **dict.fromkeys(("database", "identifier", "quoting"), _CATALOG),
    "schema": "remove it: in a table, `schema:` declares the columns, and `table:` names a table in Spark's catalog",
    "loaded_at_query": _LOADED_AT,
    **dict.fromkeys(("tests", "data_tests"), _TESTS_OF_TABLES),
    **dict.fromkeys(("loader", "overrides", "external"), "remove it: use `description` and `meta`"),
}

_SOURCE_CONFIG_KEYS = {
    "loaded_at_query": _LOADED_AT,
    "event_time": "remove it: `watermark` declares the event time of a table",
    "enabled": "remove it, and the table: a source that nothing reads has no effect",
}

_DATA_TEST_KEYS = {
    "store_failures_as": "remove it: `store_failures` stores the rows as Parquet files in target/data_tests/",
    "fail_calc": "remove it: a test counts the rows that violate it",
}

_FILE_KEYS = {
    **dict.fromkeys(("tests", "data_tests"), _TESTS),
    **dict.fromkeys(
        ("metrics", "semantic_models", "saved_queries"),
        "remove it: sqlstream has no semantic layer; compute the metric in a model",
    ),
    "macros": "remove it: describe a macro with a comment {# #} next to it",
    "analyses": "remove it: `sqlstream show --inline` shows the rows of a query that is not a model",
    "snapshots": "remove it: sqlstream has no snapshots; read the changes as a stream and write them to a sink",
}

_PROJECT_KEYS = {
    **dict.fromkeys(("on-run-start", "on-run-end"), _HOOKS),
    **dict.fromkeys(("profile", "flags"), _TARGETS),
    **dict.fromkeys(
        ("model-paths", "seed-paths", "test-paths", "macro-paths", "analysis-paths", "snapshot-paths", "docs-paths"),
        _PATHS,
    ),
    **dict.fromkeys(("asset-paths", "function-paths", "source-paths", "data-paths", "target-path", "log-path"), _PATHS),
    **dict.fromkeys(("clean-targets", "packages-install-path"), _PATHS),
    "config-version": "remove it: project.yml has only one format",
    "require-dbt-version": 'use `require_sqlstream:`, for example ">=0.1"',
    **dict.fromkeys(("dispatch", "packages", "dependencies"), _PACKAGES),
    "query-comment": "remove it: sqlstream adds nothing to the SQL that runs",
    "quoting": _CATALOG,
    **dict.fromkeys(("tests", "data_tests"), _TESTS),
    "snapshots": _FILE_KEYS["snapshots"],
    "semantic-models": _FILE_KEYS["metrics"],
    "saved-queries": _FILE_KEYS["metrics"],
}

_COLUMN_KEYS = {
    **dict.fromkeys(("tests", "data_tests"), _TESTS),
    "quote": "remove it: quote unusual names with backquotes in SQL",
    "policy_tags": "remove it: use `tags` and `meta`",
}

KEYS_BY_PLACE = {
    "project.yml": _PROJECT_KEYS,
    "a file of sources, sinks, models and seeds": _FILE_KEYS,
    "a file of unit tests": _FILE_KEYS,
    "a source": _SOURCE_KEYS,
    "a source table": {key: hint for key, hint in _SOURCE_KEYS.items() if key != "data_tests"},
    "a source's configuration": _SOURCE_CONFIG_KEYS,
    "a model's properties": _PROPERTY_KEYS,
    "a model's configuration": CONFIG_KEYS,
    "a seed's properties": {**_PROPERTY_KEYS, **_SEED_KEYS},
    "a seed's configuration": {**CONFIG_KEYS, **_SEED_KEYS},
    "a column of a model": {key: hint for key, hint in _COLUMN_KEYS.items() if key != "data_tests"},
    "a contract": {"alias_types": "remove it: types are those of Spark, whose aliases (int, integer) are equal"},
    "a column": {**_COLUMN_KEYS, "constraints": _CONSTRAINTS},
    "a data test": _DATA_TEST_KEYS,
    "the configuration of a data test": _DATA_TEST_KEYS,
}
"""The replacement for a dbt key, by the place of the key as messages name it."""

MISPLACED = {
    "project.yml": {
        "sources": "declare sources in sources.yml; `sources:` of a target overrides them",
        "sinks": "declare sinks in sinks.yml; `sinks:` of a target overrides them",
        "unit_tests": "write unit tests in YAML files in models/ or tests/models/",
    }
}
"""What to do about sqlstream's own keys in the wrong file."""

_WRITTEN = (
    "remove it, and set a `sink`: the model then runs as a query that writes its rows there; use `stored` if other "
    "models should read these rows instead of computing them again"
)
_VALUES = {
    **dict.fromkeys(("incremental", "materialized_view", "streaming_table", "table"), _WRITTEN),
    "ephemeral": "remove it: a model without a sink is already a view, which queries compute when they read it",
}
"""The replacement for a value of `materialized` in dbt."""


def replacement_for_value(key: str, value: object) -> str | None:
    """Returns the replacement for dbt's value of a key that sqlstream has too, None for any other value."""
    return _VALUES.get(str(value)) if key == "materialized" else None


def replacement_for_key(place: str, key: str) -> str | None:
    """Returns the replacement for a dbt key at a place, None if dbt has no such key there."""
    return KEYS_BY_PLACE.get(place, {}).get(key)
