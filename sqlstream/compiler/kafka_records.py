"""The records that a Kafka sink makes of a model's rows: which columns become value, key, headers and topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.compiler.compiled import Output
from sqlstream.project.configuration.config import ModelConfig

RAW, JSON, AVRO = "raw", "json", "avro"

TEXT_TYPES = ("string", "binary")
"""The types of the columns `value` and `key` that Spark writes unchanged."""

RAW_COLUMNS = ("key", "value", "topic", "partition", "headers")
"""The columns that Spark's Kafka writer reads. Their letter case matters."""


@dataclass(frozen=True)
class RecordShape:
    """The parts of a record.

    `value` are the columns in the value, none for `raw`. `key` are the columns in the key; without any, a raw record
    has the column `key`, if there is one. `headers` become headers. `unchanged` are columns that Spark reads as they
    are.
    """

    value_format: str
    value: tuple[str, ...]
    key: tuple[str, ...]
    headers: tuple[str, ...]
    unchanged: tuple[str, ...]

    @property
    def is_raw(self) -> bool:
        """Whether the model itself provides the value."""
        return self.value_format == RAW

    @property
    def has_key(self) -> bool:
        """Whether the records have keys."""
        return bool(self.key) or "key" in self.unchanged


def record_shape(output: Output, config: ModelConfig, columns: Mapping[str, str]) -> RecordShape:
    """Returns the parts of the records that `output` makes of rows with `columns`: names and Spark's types as text."""
    value_format = output.record.value_format or (RAW if _is_text(columns.get("value", "")) else JSON)
    key, headers = output.record.key or config.unique_key, output.record.headers
    if value_format == RAW:
        if [name.lower() for name in key] == ["key"] and _is_text(columns.get("key", "")):
            key = ()  # the model has made the key
        made = {*(["key"] if key else []), *(["headers"] if headers else [])}
        return RecordShape(RAW, (), key, headers, tuple(name for name in RAW_COLUMNS if name in columns.keys() - made))
    unchanged = ("topic",) if "topic" in columns and not has_topic_option(output) else ()
    apart = {*(name.lower() for name in headers), *unchanged}
    return RecordShape(
        value_format, tuple(name for name in columns if name.lower() not in apart), key, headers, unchanged
    )


def has_topic_option(output: Output) -> bool:
    """Returns whether an option names the topic of all records."""
    return any(name.lower() == "topic" for name in output.options)


def _is_text(type_: str) -> bool:
    return type_.split(" ", 1)[0] in TEXT_TYPES
