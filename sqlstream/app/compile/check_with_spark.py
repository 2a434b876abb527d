"""The part of `compile --check` that needs Spark: starts a session, has it analyze every model, and stops it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlstream.app.loading.load import Loaded
from sqlstream.app.session.session import spark_session, starting_text
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.stored.file_types import type_findings
from sqlstream.app.stored.local_sources import header_findings
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.spark_findings import SparkRefusal
from sqlstream.errors import Finding
from sqlstream.numbers import plural
from sqlstream.spark.queries.connections import ask_servers, servers_of
from sqlstream.spark.queries.model_check import check_with_spark
from sqlstream.spark.secrets import Secrets


def ask_session(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    env: Mapping[str, str],
    notify: Callable[[str], None],
    signals: StopSignals,
) -> tuple[str, tuple[SparkRefusal, ...], tuple[Finding, ...]]:
    """Returns Spark's version, what Spark refuses in `models` and everything upstream, and what their servers lack.

    Raises: FindingsError if Spark cannot start; StopRequestedError.
    """
    secrets, ids = Secrets(env), [model.unique_id for model in models]
    notice = f"{starting_text(loaded)} to check {plural(len(models), 'model')}, without data"
    with spark_session(loaded, secrets, signals, ids, notify=notify, notice=notice, over_connect=True) as runtime:
        refusals: list[SparkRefusal] = []
        for refused in check_with_spark(loaded.compiled, models, runtime, secrets):
            refusals += refused
            signals.check()
        nodes = {node for model in models for node in (model.unique_id, *loaded.compiled.upstream(model.unique_id))}
        reported = {refusal.finding.location for refusal in refusals}
        servers = servers_of(loaded.compiled, runtime.session, secrets, nodes)
        asked = [server for server in servers if server.kind != "registry"]  # a run asks no registry
        answers = ask_servers(asked, secrets)
        # Spark's check has reported the secrets of sources that are not set, and needs none of sinks
        found = [each for _, each in answers if isinstance(each, Finding) and each.code != "missing-env-var"]
        found += header_findings(loaded.compiled, nodes)
        found += type_findings(loaded.compiled, nodes, runtime.session)
        return runtime.version, tuple(refusals), tuple(each for each in found if each.location not in reported)
