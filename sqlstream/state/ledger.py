"""The ledger: a JSON file beside a checkpoint that describes the query that created it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter, ValidationError

from sqlstream.compiler.render.rendered import TemplateInputs
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.configuration.fields import format_name
from sqlstream.project.declarations.seeds import SeedContent
from sqlstream.project.formats.formats import format_of
from sqlstream.state.signature.signature import StateSignature

InputIds = Mapping[str, Mapping[str, str]]
"""The ids of what a query reads: by source, and by topic or table. One that is created again has another id."""

FUNCTION, SOURCE, SINK = "function", "source", "sink"
"""The first words of the keys of `QueryIdentity.code` that are no Python models."""

LEDGER_VERSION = 1
"""The version of the format of ledger.json. A reader refuses a later version."""


@dataclass(frozen=True)
class SourceUse:
    """One reader of a query: its name in Spark's checkpoint, and the source table or stored output that it reads.

    `watermark` is the table's declared watermark as `column delay`, or None. `path` is the absolute path or URI of the
    files, or the name of a table in the catalog; None for sources without either. `via` are the views from the query
    down to the source, joined by `/`. `stored` marks the stored output of the model `table`.

    `format` and `options`, with names in lower case, also decide which rows it reads. `folder` is the folder in which
    a pattern of files begins, or the path if it is no pattern. An earlier sqlstream did not write these.
    `declared` is the file and line of the source, and `formerly` its former name.
    """

    name: str
    table: str
    watermark: str | None
    path: str | None = None
    via: str = ""
    stored: bool = False
    format: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    declared: str = field(default="", compare=False)
    formerly: str = field(default="", compare=False)


@dataclass(frozen=True)
class OutputColumn:
    """A column that a query writes: its name, and its type as DDL."""

    name: str
    type: str

    @property
    def ddl(self) -> str:
        """The column in Spark's DDL."""
        return f"{quote_identifier(self.name)} {self.type}"


@dataclass(frozen=True)
class SinkUse:
    """A further sink of a query with `fan_out: shared`. The fields are as in `QueryIdentity`."""

    sink: str
    sink_format: Annotated[str, AfterValidator(format_name)]
    sink_path: str | None
    partition_by: tuple[str, ...] = ()
    sink_address: str | None = None
    layout: Mapping[str, str] | None = None


@dataclass(frozen=True)
class QueryIdentity:
    """All facts about a query that determine whether its checkpoint is still valid.

    `models` maps each model of the query to its compiled SQL, parents first. `fingerprints` maps the same names to a
    digest that ignores comments, white space and letter case, and each function of python/ that the query calls
    (`module:name`) to the digest of its module. `settings` are Spark settings that Spark freezes in a checkpoint or
    that change the meaning of its state. `batch`: the query runs once per run and has no checkpoint. `deduplicated`
    are the columns that deduplicate each model, `kept` the conditions of the rows that its data tests keep, if they
    drop any. `columns` are the columns that the query writes, None in a ledger of
    an early sqlstream; `partition_by` are those that become folder names. `files` has a digest of each model's file,
    and `inputs` the values that each template read. `also` are the further sinks of the query, and `separate` the
    names of those to which other queries write the model. `contents` is what decides the rows of each input beside
    its columns: its format and options; of a static one also its path or checksum. `schemas` are the declared columns
    of the inputs. `sink_address` is the topic of a Kafka sink, empty if a column names it, the database of a JDBC
    sink, or the name of a function's sink and a digest of its options; `unique_key` identifies the rows of the
    output. Both are None if they are unknown. `declared` are the target's settings of Spark that can change results,
    without those that have Spark's default; None in a ledger of an early sqlstream. `inherited` are those from
    elsewhere, such as a spark-defaults.conf; None in a ledger of an earlier sqlstream. `defaults` are the settings of
    both that do have Spark's default. `substituted` are the values that Spark puts into the SQL, by the texts that they
    replace, such as `${env:FACTOR}`; None in a ledger of an earlier sqlstream, which also lacks the settings that
    only Python code can read. `code` has a digest of each
    Python model of the query by its name, and of each function, source and sink of python/ (`function NAME` and so
    on): of its module, all that it imports from python/, and the files of the project that these name. It is None in
    a ledger of an earlier sqlstream, which has only digests of modules, in `fingerprints`. `packages` are the
    versions of other packages that the code imports, and of the target's packages and jars. `unfollowed` is what
    reading cannot follow in the code that computes rows. `seeds` are the rows of each seed, and `seed_columns` the
    columns that the query can read of it.
    `static_paths` are the paths of static tables: as written, and in their normal form. `added_contents` is the end of
    the `contents` of some inputs, which the ledger of an earlier sqlstream does not have; None in such a ledger.
    `layout` are the options with which the files of a text format must be read as they were written, without defaults;
    None in a ledger of an earlier sqlstream. `is_stored`: other queries can read the output as a stored model.
    `contract` are the columns of the enforced contract of the model, in order, each with its type and perhaps `not
    null`; none without a contract, and None in a ledger of an earlier sqlstream.
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
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: tuple[OutputColumn, ...] | None = None
    partition_by: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, TemplateInputs] = field(default_factory=dict)
    also: tuple[SinkUse, ...] = ()
    separate: tuple[str, ...] = ()
    contents: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    static_paths: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    added_contents: Mapping[str, str] | None = None
    sink_address: str | None = None
    unique_key: tuple[str, ...] | None = None
    declared: Mapping[str, str] | None = None
    inherited: Mapping[str, str] | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)
    substituted: Mapping[str, str] | None = None
    code: Mapping[str, str] | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    unfollowed: tuple[str, ...] = ()
    seeds: Mapping[str, SeedContent] = field(default_factory=dict)
    seed_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    layout: Mapping[str, str] | None = None
    is_stored: bool = False
    contract: Mapping[str, str] | None = None

    @property
    def by_sink(self) -> tuple[QueryIdentity, ...]:
        """The identity for each sink of the query, as if it were the only one."""
        names = ("sink_format", "sink_path", "partition_by", "sink_address", "layout")
        further = (replace(self, **{name: getattr(use, name) for name in names}, also=()) for use in self.also)
        return (replace(self, also=()) if self.also else self, *further)

    @property
    def writes_snapshots(self) -> bool:
        """Whether each batch of the query replaces all files of its output."""
        return not self.batch and format_of(self.sink_format).writes_snapshots(self.output_mode)

    @property
    def updates_rows(self) -> bool:
        """Whether the query updates rows of a table by their key, and leaves columns that it does not write."""
        return bool(self.unique_key) and not self.batch and self.output_mode != "complete"

    @property
    def adds_files(self) -> bool:
        """Whether the query adds files to its output, and never replaces them."""
        return format_of(self.sink_format).writes_files and not self.writes_snapshots


@dataclass(frozen=True)
class HistoryEntry:
    """One change of a version of a query: when the changed query started, what `run` did, and the changes, of which
    those in an accepted entry are the user's decision.
    """

    at: str
    action: str
    changes: tuple[str, ...]
    accepted: bool
    sqlstream_version: str
    spark_version: str


@dataclass(frozen=True)
class PendingLedger:
    """The ledger of a changed query that started after batch `after_batch` (-1: none) and has committed no batch yet.
    It takes effect with the first later commit. Until then the checkpoint belongs to the earlier query.
    """

    after_batch: int
    ledger: Ledger


@dataclass(frozen=True)
class FileSummary:
    """The files of a static table: how many, their bytes, and the last change of one of them (ms since 1970)."""

    files: int
    bytes: int
    modified: int


@dataclass(frozen=True)
class Ledger:
    """The identity of the query that owns a checkpoint, and the version that wrote it. Times are UTC, ISO 8601.

    `accepted` lists the state changes that the user accepted: when, and which models differed. `retired` are the names
    of readers that the query no longer has: the checkpoint still has their offsets, so new readers get other names.
    `former` are these readers, and those that had other paths, as they were.
    `pending` is the changed query that started last on the checkpoint, until it commits a batch. `also` are the outputs
    in the further sinks of the identity. `signature` describes the state of a stateful query, None if Spark does not
    show its plan. `written` are the files of its models, and `history` the changes of this version, the oldest first.
    `input_ids` are the ids at the last start, as far as they are known. `static_files` are the files of the static
    tables when the version began.
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
    also: tuple[str | None, ...] = ()
    signature: StateSignature | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    history: tuple[HistoryEntry, ...] = ()
    input_ids: InputIds = field(default_factory=dict)
    former: tuple[SourceUse, ...] = ()
    static_files: Mapping[str, FileSummary] = field(default_factory=dict)

    @property
    def added_files(self) -> tuple[str, ...]:
        """The outputs to which the query adds files, and never replaces them."""
        outputs = zip(self.identity.by_sink, (self.output, *self.also), strict=True)
        return tuple(path for identity, path in outputs if path is not None and identity.adds_files)

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
    """The ledger.json is torn, damaged by an edit, or from a later sqlstream. The message is one line."""


def read_ledger(text: str) -> Ledger:
    """Returns the ledger in `text`. Ignores keys that this version does not know. Raises: LedgerUnreadableError."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise LedgerUnreadableError(f"it is not valid JSON: {error}") from error
    # Before the fields are read: a later format should be named as such, not as a damaged ledger.
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
