"""The facts about a format, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sqlstream.project.formats.option_types import OptionType
from sqlstream.project.secret_text import OptionValue

STREAM, BATCH = "stream", "batch"
STREAMS, BATCHES = frozenset({STREAM}), frozenset({BATCH})
BOTH, NEITHER = STREAMS | BATCHES, frozenset[str]()

TIME_PARSER = "spark.sql.legacy.timeParserPolicy"

Use = Literal["anywhere", "source", "stream", "batch", "batch_only", "sink"]
"""Where Spark uses an option: in sources and sinks, in sources of any mode, in those of one mode, in sinks.

A stream ignores an option of batches. It does not start with one of use `batch_only`.
"""

Layout = Literal["", "typed", "named", "positional"]
"""How files store rows: columns with names and types, values with names, values by position; empty for all else."""

Declared = Literal["optional", "required", "fixed", "extended"]
"""What a schema may declare: anything, anything but a stream needs one, nothing, more than the format's columns."""


@dataclass(frozen=True)
class Option:
    """An option: the values that it takes (None: any text), and where Spark uses it."""

    takes: OptionType | None = None
    use: Use = "anywhere"


@dataclass(frozen=True)
class RequiredOption:
    """An option without which Spark cannot read or write: its name, its meaning, and an example in YAML."""

    name: str
    meaning: str
    example: str


@dataclass(frozen=True)
class Format:
    """All facts about one format. The defaults are those of a format that sqlstream does not know.

    Sets of modes hold `stream` and `batch`. Sets of triggers hold `continuous` and `real_time`.
    """

    name: str
    reads: frozenset[str] = BOTH
    """The modes in which Spark reads it."""
    writes: frozenset[str] = BOTH
    """The modes in which Spark writes it."""

    is_file: bool = False
    """Whether it reads and writes files below a path, in append mode."""
    layout: Layout = ""
    schema: Declared = "optional"
    columns: str = ""
    """The columns of every source of the format, as Spark DDL."""
    optional_columns: tuple[str, str] = ("", "")
    """An option of sources that adds columns, and these columns as Spark DDL."""
    unwritten_types: frozenset[str] = frozenset()
    """The types that files cannot store, neither as a column nor inside one (`supportDataType` of each FileFormat)."""
    holds_one_string: bool = False
    """Whether a file has exactly one column, a string."""
    needs_fields: bool = False
    """Whether each file needs a column and each struct a field, and fields with the same name need the same type."""
    file_format_class: str = ""
    """Spark's FileFormat that checks columns, below org.apache.spark.sql.execution.datasources."""

    options: Mapping[str, Option] = field(default_factory=dict)
    write_defaults: Mapping[str, str] = field(default_factory=dict)
    """The options that sqlstream gives to Spark's writer unless the sink sets them."""
    lists_all_options: bool = False
    """Whether `options` are all that Spark knows. Spark ignores every other option without a message."""
    client_prefix: str = ""
    """The prefix of options that Spark passes to the client library; for other formats these are names with a dot."""
    required: tuple[RequiredOption, ...] = ()
    address_options: tuple[str, ...] = ()
    """The options that hold addresses: one of `host:port` entries, or one of a host and one of a port."""
    connector: str | None = None
    """The connector with the jars that Spark needs for it; a JDBC driver depends on the URL instead."""

    refused_triggers: frozenset[str] = frozenset()
    """The triggers under which Spark refuses the format."""
    is_restartable: bool = True
    """Whether Spark can start a query again on its checkpoint."""
    counts_rows: bool = False
    """Whether Spark reports how many rows a stream has written to it."""
    replaces_rows: bool = False
    """Whether a batch replaces the rows of the one before."""
    refuses_partition_by: frozenset[str] = NEITHER
    """The modes in which Spark refuses `partition_by`."""
    ignores_partition_by: bool = False
    is_data_source: bool = True
    """Whether Spark finds a data source by the name, instead of handling it in the writer itself."""

    takes_keys: bool = False
    """Whether a sink applies `unique_key`, or passes it to code of the project."""
    updates_by_key: bool = False
    """Whether a sink takes update mode only with a `unique_key`."""

    needs_separate_query: bool = False
    """Whether a sink needs a separate query, and cannot get rows from one with `fan_out: shared`."""

    is_table: bool = False
    """Whether it reads and writes tables that record their columns and commits, with a path or a name in a catalog."""
    properties: tuple[str, ...] = ()
    """The starts of the options of a sink that become properties of its new table."""
    name_refuses: str = ""
    """The characters that names of its columns cannot contain."""

    is_database: bool = False
    """Whether a sink is a table of a database, which sqlstream creates and to which it applies each batch."""
    is_embedded: bool = False
    """Whether a sink is one file at a local path."""

    may_make_tables: bool = False
    """Whether other queries of the same run may read by name the tables of its sources or sinks."""

    @property
    def writes_files(self) -> bool:
        """Whether a sink of the format writes files."""
        return self.is_file and bool(self.writes)

    @property
    def keeps_columns(self) -> bool:
        """Whether the rows of a sink can be read back with the columns of the model that has written them."""
        return self.is_file or self.is_table or self.name == "table"

    def writes_snapshots(self, output_mode: str) -> bool:
        """Whether a stream in this output mode replaces all files of its output in each batch."""
        return self.writes_files and output_mode == "complete"

    def keeps_rows(self, output_mode: str, unique_key: Sequence[str]) -> bool:
        """Whether a stream only adds rows to a sink, and never changes or removes any."""
        return output_mode == "append" and not (unique_key and self.updates_by_key)

    @property
    def names_folders(self) -> bool:
        """Whether the values of partition columns are only in the names of folders, or as text in Delta's log."""
        return self.is_file or self.name in ("delta", "table")

    @property
    def writes_path(self) -> bool:
        """Whether a sink of the format has its own path."""
        return self.writes_files or self.is_embedded

    @property
    def keeps_output(self) -> bool:
        """Whether a sink is files or a table, whose rows can be read back. A query with a new sink would leave its
        earlier rows behind.
        """
        return self.writes_files or self.is_table or self.is_database

    @property
    def merges_batches(self) -> bool:
        """Whether a sink gets each batch as a whole, and applies `unique_key` to it or can do so."""
        return self.is_database or self.updates_by_key or self.name == "python"

    @property
    def deletes_by_key(self) -> bool:
        """Whether a sink applies `delete_when`."""
        return self.is_database or self.updates_by_key or self.name == "kafka"

    @property
    def is_parsed(self) -> bool:
        """Whether Spark parses text, finds types by looking at values, and may meet corrupt records."""
        return self.layout in ("named", "positional")

    def columns_with(self, options: Mapping[str, OptionValue]) -> str | None:
        """Returns the columns of a source with `options` as Spark DDL, None if the format does not determine them."""
        option, added = self.optional_columns
        values = (str(value).lower() for name, value in options.items() if option and name.lower() == option.lower())
        return f"{self.columns}, {added}" if "true" in values else self.columns or None

    def option_names(self, mode: str) -> frozenset[str] | None:
        """Returns the options of a source that is read in `mode`, or of a sink (empty `mode`); None if unknown."""
        if not self.lists_all_options or not (self.reads if mode else self.writes):
            return None
        uses = ("anywhere", "source", "stream", "batch", "batch_only") if mode else ("anywhere", "sink")
        own = {name for name, option in self.options.items() if option.use in uses}
        return frozenset(own | ({"path"} if mode else _WRITER_OPTIONS))

    def writer_options(self, options: Mapping[str, str], time_parser: str) -> dict[str, str]:
        """Returns the options of Spark's writer: those of the sink, and the defaults that it does not set.

        `time_parser` is Spark's setting `TIME_PARSER`: its legacy parser refuses the patterns of the defaults.
        """
        given = {name.lower() for name in options}
        defaults = self.write_defaults if time_parser.upper() != "LEGACY" else {}
        return {**{name: value for name, value in defaults.items() if name.lower() not in given}, **options}

    def values_of(self, option: str, *, streams: bool) -> OptionType | None:
        """Returns the values that an option takes (in any letter case), None for any text. `streams`: in a stream."""
        found = next((known for name, known in self.options.items() if name.lower() == option.lower()), Option())
        return None if found.use == STREAM and not streams else found.takes


_WRITER_OPTIONS = frozenset({"checkpointLocation", "path", "queryName", "retention"})
"""The options of every streaming writer beside those of its format (DataStreamWriter, FileStreamSink)."""
