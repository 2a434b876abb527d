"""The ledger: what sqlstream wrote down about the query that made a checkpoint, as JSON beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter, ValidationError

from sqlstream.compiler.render.values import TemplateInputs
from sqlstream.project.configuration.fields import format_name

EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
"""The setting under which a checkpoint knows its sources by name; without it they are known by their order."""

LEDGER_VERSION = 1
"""The format of ledger.json; a reader refuses a later one rather than guess."""


@dataclass(frozen=True)
class SourceUse:
    """One reader of a query: the name Spark's checkpoint knows it by, and the source table it reads.

    `watermark` is the table's declared one as `column delay`, or None; `path` is the absolute path or URI it is read
    from, which is how Spark's checkpoint knows its files, or the table's name in the catalog, None for sources without
    either; `via` are the views from the query down to the source, joined by `/`.
    """

    name: str
    table: str
    watermark: str | None
    path: str | None = None
    via: str = ""


@dataclass(frozen=True)
class OutputColumn:
    """A column that a query writes: its name, and its type as DDL."""

    name: str
    type: str


@dataclass(frozen=True)
class QueryIdentity:
    """What decides whether a checkpoint still means what it meant.

    `models` maps each model that the query is made of to its compiled SQL, parents first; `fingerprints` maps the same
    names to a digest that ignores comments, white space and letter case, and the functions of python/ that it calls, as
    `module:name`, to that of their module. `settings` are Spark settings which Spark freezes in a checkpoint or which
    change the meaning of its state. `batch` says that it is written once per run and has no checkpoint. `deduplicated`
    are the columns by which models are, by name. `columns` are those that the query writes, None in a ledger of an
    early sqlstream; `partition_by` are those of them that name folders. `files` has by
    model a digest of its file, and `inputs` what its template was rendered with.
    """

    query: str
    model: str
    models: Mapping[str, str]
    fingerprints: Mapping[str, str]
    sources: tuple[SourceUse, ...]
    sink_format: Annotated[str, AfterValidator(format_name)]
    sink_path: str | None
    output_mode: str
    stateful: bool
    settings: Mapping[str, str]
    batch: bool = False
    deduplicated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: tuple[OutputColumn, ...] | None = None
    partition_by: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, TemplateInputs] = field(default_factory=dict)


@dataclass(frozen=True)
class PendingLedger:
    """The ledger of a changed query that was started after batch `after_batch` (-1: none) and has committed no batch
    yet: it takes effect with the first later commit. Until then the checkpoint is that of the earlier query.
    """

    after_batch: int
    ledger: Ledger


@dataclass(frozen=True)
class Ledger:
    """The identity of the query that owns a checkpoint, and who wrote it down. Times are UTC, ISO 8601.

    `accepted` lists the state changes that the user accepted: when, and which models differed. `retired` are the names
    of readers that the query has no more: the checkpoint still knows where they stopped, so none is given again.
    `pending` is the changed query that was last started on the checkpoint, until it has committed a batch.
    """

    identity: QueryIdentity
    version: int
    written_at: str
    sqlstream_version: str
    spark_version: str
    reason: str
    output: str | None = None
    accepted: tuple[Mapping[str, Any], ...] = field(default=())
    retired: tuple[str, ...] = ()
    pending: PendingLedger | None = None

    def settled(self, last_commit: int) -> Ledger:
        """Returns the ledger in effect when batch `last_commit` (-1: none) is the last one committed."""
        if self.pending is not None and last_commit > self.pending.after_batch:
            return self.pending.ledger
        return self

    def to_json(self) -> str:
        """Returns the text of ledger.json."""
        return json.dumps({"ledger_version": LEDGER_VERSION, **asdict(self)}, indent=2) + "\n"


_LEDGER = TypeAdapter(Ledger)


class LedgerUnreadableError(ValueError):
    """A ledger.json that is torn, edited beyond recognition, or from a later sqlstream; the message is one line."""


def read_ledger(text: str) -> Ledger:
    """Returns the ledger that `text` holds; keys that this version does not know are passed over.

    Raises: LedgerUnreadableError.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise LedgerUnreadableError(f"it is not valid JSON: {error}") from error
    _check_version(data)
    try:
        return _LEDGER.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise LedgerUnreadableError(f"it is not a ledger: `{where}`: {first['msg']}") from error


def _check_version(data: object) -> None:
    version = data.get("ledger_version") if isinstance(data, dict) else None
    if not isinstance(version, int):
        raise LedgerUnreadableError("it is not a ledger: it has no `ledger_version`")
    if version > LEDGER_VERSION:
        raise LedgerUnreadableError(
            f"a later sqlstream wrote it, in format {version}; this one reads formats up to {LEDGER_VERSION}"
        )
