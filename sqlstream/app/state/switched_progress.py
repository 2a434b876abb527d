"""The process that still runs the version before a promotion or rollback, and what the new one has not read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from sqlstream.app.running.places import storage_base
from sqlstream.app.running.stored_query import StoredQuery
from sqlstream.app.state.progress import ProgressReader
from sqlstream.report.runs.progress import lag_text
from sqlstream.report.runs.spans import long_seconds_text
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.state.progress.lag import amount_of
from sqlstream.state.progress.progress import VersionProgress
from sqlstream.state.results.switched import Switched


def with_progress(done: Switched, query: StoredQuery) -> Switched:
    """Returns `done` with the process that still runs the version before, and how far the current one is behind, both
    as `sqlstream status` knows them; without what cannot be read.
    """
    reader = ProgressReader(query.loaded, storage_base(query.loaded), query.storages.of)
    with suppress(OSError, *SPARK_ERRORS):  # the switch itself has succeeded
        current, before = (reader.version(query.model, version) for version in (done.version, done.before))
        return replace(done, holder=before.holder, behind=tuple(_behind(current, before)))
    return done


def _behind(current: VersionProgress, before: VersionProgress) -> Iterator[str]:
    name = f"version {current.position.version}"
    for source in current.sources:
        if source.lag is not None and amount_of(source.lag):
            yield f"{name} has not read {lag_text(source.lag)} of {source.name} yet"
    own, other = current.position.watermark_ms, before.position.watermark_ms
    if own is not None and other is not None and own < other:
        behind = long_seconds_text((other - own) / 1000)
        yield f"the watermark of {name} is {behind} behind that of version {before.position.version}"
