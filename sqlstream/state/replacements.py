"""A range of rows to recompute: the column with their time, its values in the range, and the folders of a file sink
that have them; and a checkpoint of what the stream has read, which computes all rows again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import unquote

from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.state.backfills import Offsets, SourceHistory
from sqlstream.state.ledger import OutputColumn

TIME_TYPES = ("date", "timestamp", "timestamp_ntz")
"""The types of columns that can have the time of a row."""

_DAY = timedelta(days=1)


class NotReplaceableError(ValueError):
    """A range cannot be replaced. `fix` says what to do; both are without a period."""

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(why)
        self.fix = fix


@dataclass(frozen=True)
class ColumnRange:
    """The rows whose `column` is in a range, from `since` (inclusive) to `until` (exclusive), in UTC. A date or a time
    without a zone is compared with the text of these times.
    """

    column: str
    type: str
    since: datetime
    until: datetime

    @property
    def limits(self) -> tuple[str, str]:
        """The literals of Spark SQL for the two times, with the type of the column."""
        return self._literal(self.since), self._literal(self.until)

    @property
    def condition(self) -> str:
        """The condition of Spark SQL that a row is in the range; null is not."""
        name, (since, until) = quote_identifier(self.column, always=True), self.limits
        return f"{name} >= {since} AND {name} < {until}"

    def _literal(self, time: datetime) -> str:
        if self.type == "date":
            return f"DATE '{time.date().isoformat()}'"
        # TIMESTAMP alone means what the setting spark.sql.timestampType says
        text = time.replace(tzinfo=None).isoformat(" ", "microseconds")
        return f"TIMESTAMP_NTZ '{text}'" if self.type == "timestamp_ntz" else f"TIMESTAMP_LTZ '{text}Z'"


def folder_value(path: str, column: str) -> str | None:
    """Returns the value of a column in the names of the folders of a file, None if they do not have the column, or for
    null.
    """
    for part in path.split("/")[:-1]:
        name, _, value = part.partition("=")
        if unquote(name).lower() == column.lower():
            return None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
    return None


def column_range(column: OutputColumn, since: datetime, until: datetime) -> ColumnRange:
    """Returns the rows of a range. Raises: NotReplaceableError if the range has parts of the days of a date."""
    since, until = since.astimezone(UTC), until.astimezone(UTC)
    first = datetime(since.year, since.month, since.day, tzinfo=UTC)
    last = datetime(until.year, until.month, until.day, tzinfo=UTC)
    if column.type == "date" and (since, until) != (first, last):
        last += _DAY if until > last and last.date() < date.max else timedelta(0)
        why = f"the range begins or ends within a day, and {quoted(column.name)} has whole days"
        fix = f"recompute whole days: --from {first.date().isoformat()} --to {last.date().isoformat()}"
        raise NotReplaceableError(why, fix)
    return ColumnRange(column.name, column.type, since, until)


def time_column(
    columns: Sequence[OutputColumn], partition_by: Sequence[str], by: str | None, *, whole_partitions: bool
) -> OutputColumn:
    """Returns the column with the time of a row: `by`, or else the only one that partitions the sink, or else the only
    one of the model. With `whole_partitions`, it must partition the sink. Raises: NotReplaceableError.
    """
    times = [column for column in columns if column.type in TIME_TYPES]
    partitions = {name.lower() for name in partition_by}
    folders = [column for column in times if column.name.lower() in partitions]
    if by is not None:
        found = next((column for column in columns if column.name.lower() == by.lower()), None)
        if found is None or found not in times:
            why = "the model has no such column" if found is None else f"its type is {found.type}"
            known = quoted_list([column.name for column in times])
            fix = f"name one of {known} with --by" if times else "select the time of each row in the model"
            raise NotReplaceableError(f"{quoted(by)} is no column with a date or a time: {why}", fix)
        candidates = [found]
    else:
        candidates = folders or times
    if whole_partitions and not any(column in folders for column in candidates):
        raise NotReplaceableError(
            "only whole folders of files can be replaced, and partition_by of the sink has no date or time"
            if by is None
            else f"only whole folders of files can be replaced, and partition_by does not have {quoted(by)}",
            "select a date, such as `to_date(ts) as day`, and write it with partition_by='day' in a new version",
        )
    if len(candidates) != 1:
        names = quoted_list([column.name for column in candidates])
        raise NotReplaceableError(
            f"the model has several columns with a date or a time: {names}"
            if candidates
            else "the model has no column with a date or a time",
            "name the one that the range is about with --by" if candidates else "select the time of each row in it",
        )
    return candidates[0]


def with_watermark(text: str, watermark_ms: int) -> str:
    """Returns an entry of the offsets log with another watermark (ms since 1970)."""
    version, batch, *offsets = text.split("\n")
    settings = {**json.loads(batch), "batchWatermarkMs": watermark_ms}
    return "\n".join([version, json.dumps(settings, separators=(",", ":")), *offsets])


def first_read(first: Offsets, earliest: Offsets, done: Sequence[SourceHistory], end: Offsets) -> Offsets:
    """Returns the first offset of each partition that the stream, which began with `first`, or one of the backfills
    `done` has read. A partition that was added later begins with its `earliest` record. `end` has all partitions.

    Raises: NotReplaceableError if there are offsets in between that nothing has read.
    """
    found: dict[str, dict[str, int]] = {}
    for topic, partitions in end.items():
        for partition in partitions:
            start = first.get(topic, {}).get(partition)
            if start is None:
                start = earliest.get(topic, {}).get(partition, 0)
            spans = [
                (history.start[topic][partition], history.end[topic][partition])
                for history in done
                if partition in history.end.get(topic, {})
            ]
            for begun, ended in sorted(spans, reverse=True):
                if begun == ended:
                    continue
                if ended != start:
                    raise NotReplaceableError(
                        f"backfills have left out records of {topic}-{partition} before offset {start:,}",
                        "write them first, with `sqlstream backfill` and a wider range",
                    )
                start = begun
            found.setdefault(topic, {})[partition] = start
    return found


def removed_records(start: Offsets, earliest: Offsets, at: Offsets, end: Offsets) -> list[str]:
    """Returns the partitions from which Kafka may have removed records of the range that the stream has read. `at` are
    the first offsets at the beginning of the range, without those partitions that have no later record.
    """
    found = []
    for topic, partitions in start.items():
        for partition, begun in partitions.items():
            left = earliest.get(topic, {}).get(partition, end[topic][partition])
            # An older record that is still there shows that Kafka has not removed any of the range.
            oldest = at.get(topic, {}).get(partition, end[topic][partition])
            if left > begun and oldest <= left:
                found.append(f"{topic}-{partition}")
    return found


def initial_offsets(offsets: Offsets) -> str:
    """Returns the file in a checkpoint with the offsets at which a source of Kafka begins
    (KafkaSourceInitialOffsetWriter).
    """
    return "\0v1\n" + json.dumps(offsets, separators=(",", ":"))
