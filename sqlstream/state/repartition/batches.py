"""The batches with which Spark repartitions the state of a query. Such a batch reads no data: its entry in the offsets
log repeats the batch before it, with another number of partitions.

See OfflineStateRepartitionRunner of Spark 4.3. Spark refuses to start a query whose last batch is an unfinished
repartition (STREAMING_UNFINISHED_REPARTITION_DETECTED).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.state.batch_logs import BatchLog
from sqlstream.state.ledger import QueryIdentity

PARTITIONS = "spark.sql.shuffle.partitions"
"""Spark's setting for the number of partitions of a query's state. Its first batch fixes it in the checkpoint."""

STATE_FILE = re.compile(r"(?:\A|/)(?P<version>\d+)(?:_[^/]*)?\.(?P<kind>zip|changelog|delta|snapshot)\Z")
"""The name of a file with the state, or its changes, after batch `version` - 1."""

METADATA_FILE = re.compile(r"(?:\A|/)_metadata/v\d+/(?P<batch>\d+)\Z")
"""The name of a file that describes an operator from batch `batch` on."""


@dataclass(frozen=True)
class RepartitionBatch:
    """A batch that changes the number of partitions from `before` to `after`."""

    number: int
    before: int
    after: int


def batch_settings(text: str) -> Mapping[str, str]:
    """Returns the settings that an entry of the offsets log fixes. `text` is complete. Empty for a continuous query."""
    line = text.split("\n")[1]
    found = json.loads(line) if line else {}
    return dict(found.get("conf", {}))


def batch_partitions(offsets: BatchLog, number: int) -> int | None:
    """Returns the number of partitions of a batch, None if its entry was not read or does not have it."""
    text = offsets.texts.get(number)
    value = None if text is None else batch_settings(text).get(PARTITIONS)
    return None if value is None else int(value)


def last_repartition(offsets: BatchLog) -> RepartitionBatch | None:
    """Returns the last batch of a query if it is a repartition. The entries of `offsets` are complete."""
    number = offsets.last
    before, after = batch_partitions(offsets, number - 1), batch_partitions(offsets, number)
    if before is None or after is None or before == after:
        return None
    return RepartitionBatch(number, before, after)


def target_partitions(settings: Mapping[str, object], old: QueryIdentity) -> int | None:
    """Returns the number of partitions that the `settings` of a target ask for, None if the state of the query `old`
    already has it, there is no state, or they ask for none.
    """
    given, kept = settings.get(PARTITIONS), old.settings.get(PARTITIONS)
    is_other = old.stateful and given is not None and str(given) != kept
    return int(str(given)) if is_other and str(given).isdecimal() else None


def is_written_by(name: str, batch: int) -> bool:
    """Returns whether batch `batch` writes the file `name` below the folder `state` of a checkpoint. The state after
    batch n has version n + 1. A file whose name does not depend on the batch is not needed to load the state.
    """
    state, metadata = STATE_FILE.search(name), METADATA_FILE.search(name)
    return (state is not None and int(state["version"]) == batch + 1) or (
        metadata is not None and int(metadata["batch"]) == batch
    )
