"""Words of dbt that sqlstream does not have, and what it has instead; for the fix of a finding."""

from __future__ import annotations

_QUERIES = "take it out: templates are rendered before Spark starts; declare what it reads as a source or a seed"
_PACKAGES = "packages of dbt are not read; copy the macro into macros/, or use a function of Spark's SQL"
_RELATION = "take it out: a model is a view in Spark, named like its file; where a sink writes, sinks.yml says"
_FILTER = "take it out, with its {% if %}: Spark gives a stream's query only new rows"
_HOOKS = "take it out: a stream has no moment before or after it; run other SQL by other means"
_ROWS = "take it out: a sink's output_mode says whether rows are added (append) or replaced (update, complete)"

TEMPLATE_NAMES = {
    "is_incremental": _FILTER,
    "should_full_refresh": _FILTER,
    **dict.fromkeys(("adapter", "api", "graph", "load_result", "run_query", "statement", "store_result"), _QUERIES),
    **dict.fromkeys(("codegen", "dbt", "dbt_date", "dbt_expectations", "dbt_utils"), _PACKAGES),
    **dict.fromkeys(("database", "schema"), _RELATION),
    "doc": "take it out: descriptions are plain text in YAML",
    "flags": "take it out; the command line's choices are not known to templates, but those of --vars are: var('name')",
    "modules": "take it out; `run_started_at` is the time of the run, and dates are computed in the SQL",
    "print": "write log(message, info=true)",
    "set": "write a list instead; Jinja's |unique filter leaves each value in it once",
    "zip": "loop over range() with an index",
}
"""What to do instead, by the name that a template of dbt uses."""

MODEL_KEYS = {
    "materialized": "take it out: a model with a sink is a stream, and one without is a view; give it sink='...'",
    **dict.fromkeys(("alias", "database", "schema", "location_root", "file_format"), _RELATION),
    **dict.fromkeys(("incremental_strategy", "merge_update_columns", "unique_key"), _ROWS),
    **dict.fromkeys(("pre_hook", "post_hook", "pre-hook", "post-hook", "sql_header"), _HOOKS),
    "full_refresh": "take it out: `sqlstream run --full-refresh` starts a query over",
    "on_schema_change": "take it out: a run refuses a change that does not fit the checkpoint, and says what to do",
    "docs": "take it out: `description` and `meta` are what sqlstream keeps",
}
"""What to do instead, by the configuration of a model that dbt has."""
