"""The requests of callers, as frozen values."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlstream.compiler.spark_versions import installed_spark
from sqlstream.state.runs.limits import NO_LIMITS, RunLimits
from sqlstream.state.runs.shards import Shard

UI_HOST, UI_PORT = "127.0.0.1", 8321
"""Where the page of `sqlstream ui` is by default."""

SHOWN_ROWS = 5
"""The default number of rows of `show` for each node, as in dbt."""

SAMPLED_FILES = 20
"""The default number of files that `source schema` reads."""

MEMORY_ROWS = 20
"""The rows of a memory sink's table to show at the end of a run, as in Spark's show()."""

FIRST_BATCH, CAUGHT_UP = "first-batch", "caught-up"
"""When readers see a version that started over: after its first batch, or when it has read what there is."""


def silent(line: str) -> None:
    """Ignores progress messages."""
    del line


@dataclass(frozen=True)
class ProjectRequest:
    """A project and a target.

    `folder` is the project's folder or one below it. `variables` override those of project.yml. `env` is what
    env_var() reads (default: the environment of this process). `target_named_by` says where the name `target` comes
    from, for the message if there is no such target. With `partial_parse`, unchanged files are not compiled again.
    `macros` maps names of macros to results that replace their calls. `notify` gets progress messages. `spark_version`
    returns the version of the installed Spark. Without `starts_java`, Spark's parser is not asked about SQL that
    sqlstream cannot parse.
    """

    folder: Path
    target: str | None = None
    variables: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    target_named_by: str = "the request"
    partial_parse: bool = True
    macros: Mapping[str, object] = field(default_factory=dict)
    notify: Callable[[str], None] = field(default=silent, repr=False, compare=False)
    spark_version: Callable[[], str] = field(default=installed_spark, repr=False, compare=False)
    starts_java: bool = True


@dataclass(frozen=True)
class Selection:
    """Selectors in dbt's syntax. An empty `select` means all nodes.

    `selector` names a selector in selectors.yml and replaces `select` and `exclude`. If all three are empty, the
    default of selectors.yml applies. `resource_types` (empty: all) and `excluded_types` filter the selected nodes.
    `state` is a saved manifest.json or its folder, which `state:` compares with. `nodes` are unique ids that replace
    all of these: what `retry` repeats. Of the queries that these select, a run has those of its `shard`.
    """

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    resource_types: tuple[str, ...] = ()
    excluded_types: tuple[str, ...] = ()
    selector: str | None = None
    state: Path | None = None
    nodes: frozenset[str] | None = None
    shard: Shard | None = None

    def has_type(self, resource_type: str) -> bool:
        """Returns whether nodes of a type can be selected."""
        return resource_type not in self.excluded_types and resource_type in (self.resource_types or (resource_type,))


EVERYTHING = Selection()
"""Every node of the project."""


@dataclass(frozen=True)
class UiRequest:
    """Where to serve the page of `sqlstream ui`. Without a `port`, on the first free one from `UI_PORT` on. Without a
    `token`, a random one protects the page if other machines can connect.
    """

    host: str = UI_HOST
    port: int | None = None
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run` and `build` that run_results.json records, so that `retry` repeats a command with them. The
    command line and the record use the names of these fields; an option is added here and in `cli/run_options.py`.

    With `full_refresh`, all queries start over, except those that have done so since `refreshed_since` (UTC), because a
    run that failed has started their new versions. `accept_state_change` are selectors of changed queries that may
    resume with their state. `migrate` are selectors of queries whose state moves to the target's number of partitions,
    `parallel` those of queries whose new version runs in parallel with the current one. With `metrics_port`, the run
    answers requests for its metrics and its health on that port of `metrics_host`. `switch_when` is `FIRST_BATCH` or
    `CAUGHT_UP`; None: as the run that started the version over said, or after its first batch.
    """

    available_now: bool = False
    full_refresh: bool = False
    refreshed_since: datetime | None = None
    limits: RunLimits = NO_LIMITS
    accept_state_change: tuple[str, ...] = ()
    migrate: tuple[str, ...] = ()
    parallel: tuple[str, ...] = ()
    switch_when: str | None = None
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"


@dataclass(frozen=True)
class RunRequest(RunOptions):
    """A run or a build: what to start, with which options, and how to show it.

    With `console_to_stderr`, console sinks print to stderr. `limit` is the number of rows of a memory sink's table to
    show at the end (None: all). With `ui`, the run serves the page of the project. `kept` are the unique ids of queries
    that a full refresh does not start over. With `standby`, the run waits as long as other runs have its queries.
    """

    project: ProjectRequest
    selection: Selection = EVERYTHING
    debug: bool = False
    console_to_stderr: bool = False
    limit: int | None = MEMORY_ROWS
    ui: UiRequest | None = None
    kept: frozenset[str] = frozenset()
    standby: bool = False


@dataclass(frozen=True)
class PlanRequest:
    """What to plan. With `check`, Spark compares the plans of changed queries that keep state. `parallel` are selectors
    of queries whose new version runs in parallel with the current one.
    """

    project: ProjectRequest
    selection: Selection = EVERYTHING
    check: bool = False
    parallel: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnitTestRequest:
    """The unit tests to run.

    With `fail_fast`, no test starts after one that did not pass. With `equivalence`, each stream is also compared with
    the batch query. With `explains`, a passing test also explains why there are no rows.
    """

    project: ProjectRequest
    selection: Selection = EVERYTHING
    fail_fast: bool = False
    equivalence: bool = False
    explains: bool = False
