"""Finds the fields of JSON records that the source does not declare: counts them, refuses or keeps them.

Spark's parser skips such fields without a trace, so each record is read a second time: for the names of its fields
and, if declared columns have fields themselves or values are kept, completely, as a variant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql.functions import (
    array,
    array_contains,
    array_distinct,
    array_except,
    array_join,
    array_union,
    call_function,
    coalesce,
    col,
    concat,
    count_if,
    create_map,
    exists,
    flatten,
    from_json,
    get,
    json_object_keys,
    length,
    lit,
    map_concat,
    map_contains_key,
    map_entries,
    map_filter,
    map_from_entries,
    map_keys,
    map_values,
    parse_json,
    reverse,
    schema_of_variant,
    size,
    struct,
    substring,
    to_json,
    to_variant_object,
    transform,
    transform_values,
    try_element_at,
    try_variant_get,
    when,
)
from pyspark.sql.functions import filter as filter_
from pyspark.sql.functions import slice as slice_
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sqlstream.project.declarations.schema_changes import evolves
from sqlstream.project.values import SourceTable
from sqlstream.spark.reading.corrupt import NEW_FIELD, fails_at, once
from sqlstream.spark.reading.type_text import TEXT_PATTERNS, TIME_PATTERNS

FOUND = "_sqlstream_new_fields"
"""The column with the names of the new fields of a record; models do not see it."""

FILE = "_file_path"
"""The field of rescued data with the file of the record."""

MOST_NAMES, LONGEST_NAME = 20, 100
"""The most new fields of one record that are named and counted, and the most characters of their names."""

MOST_SETS, SKETCHED_SETS = 50, 1_000
"""The most sets of new fields that a batch reports, those that most records have; and the most that are counted
exactly: with more of them, counts are estimates.
"""

LONGEST_TYPE = 4_000
"""The most characters of the types of the new fields of one record."""

_FIELDS = "map<string,variant>"


@dataclass(frozen=True)
class NewFields:
    """The fields of JSON objects that are not in `declared`, the columns of `table`. `text` has the object, and `place`
    where it is, for messages; `file` is the path of its file, null or None without one. `options` are those of the
    parser, with all secrets. With `has_texts` all values are texts, of which some are numbers and booleans. Fields that
    begin with `ignored_prefix`, if it is set, are not looked at.
    """

    table: SourceTable
    declared: StructType
    text: Column
    options: Mapping[str, str]
    place: Column
    file: Column | None = None
    has_texts: bool = False
    ignored_prefix: str = ""

    def found(self, frame: DataFrame, metric: str | Observation | None) -> DataFrame:
        """Returns `frame` with the column `FOUND`. With a `metric`, Spark counts the records with new fields as `rows`,
        and each set of such fields; of a source that evolves, also each set of their types. With `schema_changes:
        fail`, a query fails at such a record, with an error that `read_corrupt_record` recognizes.
        """
        frame = frame.withColumn(FOUND, once(array_distinct(self._names())))
        is_new = size(col(FOUND)) > 0
        named = transform(slice_(col(FOUND), 1, MOST_NAMES), lambda name: substring(name, 1, LONGEST_NAME))
        if metric is not None:
            sets = call_function("approx_top_k", when(is_new, to_json(named)), lit(MOST_SETS), lit(SKETCHED_SETS))
            counts = [count_if(is_new).alias("rows"), sets.alias("sets")]
            if evolves(self.table):
                types = call_function("approx_top_k", when(is_new, self._types()), lit(MOST_SETS), lit(SKETCHED_SETS))
                counts.append(types.alias("types"))
            frame = frame.observe(metric, *counts)
        if self.table.schema_changes != "fail":
            return frame
        start = lit(f"{NEW_FIELD}\n{self.table.full_name}\n")
        error = concat(start, self.place, lit("\n"), array_join(named, ", "))
        return frame.filter(fails_at(is_new, error))

    def rescued(self) -> Column:
        """Returns the new fields with their values, and the file, as a JSON object; null without a new field."""
        unknown = _unknown_fields(self._fields, self.declared)
        if self.file is not None:
            path = create_map(lit(FILE), self.file.cast("variant"))
            # a field of this name is kept
            unknown = map_concat(map_filter(path, lambda name, _value: ~map_contains_key(unknown, name)), unknown)
        return when(size(col(FOUND)) > 0, to_json(unknown))

    def _types(self) -> Column:
        """Returns the types of the new fields as `read_found_type` reads them; null if the text is too long."""
        patterns = TEXT_PATTERNS if self.has_texts else TIME_PATTERNS
        fields = _unknown_fields(self._fields, self.declared)
        unknown = transform_values(fields, lambda _name, value: _as_typed(value, patterns))
        text = schema_of_variant(to_variant_object(unknown))
        return when(length(text) <= LONGEST_TYPE, text)

    def _names(self) -> Column:
        keys = coalesce(json_object_keys(self.text), map_keys(self._fields))
        if self.ignored_prefix:
            keys = filter_(keys, lambda name: ~name.startswith(self.ignored_prefix))
        unknown = coalesce(array_except(keys, _texts(self.declared.names)), _texts([]))
        nested = list(_nested_names(self._fields, self.declared, ""))
        return array_union(unknown, flatten(array(*nested))) if nested else unknown

    @cached_property
    def _fields(self) -> Column:
        """The fields of an object. A variant cannot have a field twice; then all values are texts."""
        texts = from_json(self.text, "map<string,string>", dict(self.options))
        fields = from_json(self.text, _FIELDS, dict(self.options))
        fields = coalesce(fields, transform_values(texts, lambda _name, value: value.cast("variant")))
        if self.ignored_prefix:
            fields = map_filter(fields, lambda name, _value: ~name.startswith(self.ignored_prefix))
        return _without_repeated(fields)


def _as_typed(value: Column, patterns: Iterable[tuple[DataType, str]]) -> Column:
    """Returns a text with a pattern of a type as a value of it, and any other value as it is."""
    text = when(schema_of_variant(value) == "STRING", try_variant_get(value, "$", "string"))
    for kind, pattern in patterns:
        typed = when(text.rlike(pattern), text.try_cast(kind))
        value = coalesce(typed.cast("variant"), value)
    return value


def _without_repeated(fields: Column) -> Column:
    """Returns a map without repeated keys, of which the last one counts, as in Spark's parser of JSON."""
    names = array_distinct(map_keys(fields))

    def last(name: Column) -> Column:
        return get(reverse(filter_(map_entries(fields), lambda entry: entry.getField("key") == name)), lit(0))

    once = map_from_entries(transform(names, last))
    return when(size(names) == size(fields), fields).otherwise(once)


def _nested_names(fields: Column, kind: StructType, prefix: str) -> Iterator[Column]:
    """Yields the paths of the new fields in each of the `fields` whose declared type has fields."""
    for each in kind:
        if _has_fields(each.dataType):
            value = try_element_at(fields, lit(each.name))
            yield coalesce(_names_in(value, each.dataType, f"{prefix}{each.name}"), _texts([]))


def _names_in(value: Column, kind: DataType, path: str) -> Column:
    """Returns the paths of the new fields in a variant of a declared type: `address.zip`, `items[].color`."""
    if isinstance(kind, StructType):
        fields = try_variant_get(value, "$", _FIELDS)
        names = array_except(map_keys(fields), _texts(kind.names))
        unknown = coalesce(transform(names, lambda name: concat(lit(f"{path}."), name)), _texts([]))
        return flatten(array(unknown, *_nested_names(fields, kind, f"{path}.")))
    if isinstance(kind, MapType):
        items, element = map_values(try_variant_get(value, "$", _FIELDS)), kind.valueType
    else:
        items, element = try_variant_get(value, "$", "array<variant>"), _element(kind)
    return flatten(transform(items, lambda item: coalesce(_names_in(item, element, f"{path}[]"), _texts([]))))


def _unknown_fields(fields: Column, kind: StructType) -> Column:
    """Returns the new fields among `fields`, also those within declared ones, as a map of variants."""
    own = map_filter(fields, lambda name, _value: ~array_contains(_texts(kind.names), name))
    nested = [
        struct(
            lit(each.name).alias("key"), _unknown(try_element_at(fields, lit(each.name)), each.dataType).alias("value")
        )
        for each in kind
        if _has_fields(each.dataType)
    ]
    if not nested:
        return own
    return map_concat(own, map_from_entries(filter_(array(*nested), lambda entry: entry.getField("value").isNotNull())))


def _unknown(value: Column, kind: DataType) -> Column:
    """Returns what a variant of a declared type has of new fields, in the same structure; null without any."""
    if isinstance(kind, StructType):
        found = _unknown_fields(try_variant_get(value, "$", _FIELDS), kind)
        return when(size(found) > 0, parse_json(to_json(found)))
    if isinstance(kind, MapType):
        values = transform_values(
            try_variant_get(value, "$", _FIELDS), lambda _name, item: _unknown(item, kind.valueType)
        )
        found = map_filter(values, lambda _name, item: item.isNotNull())
        return when(size(found) > 0, parse_json(to_json(found)))
    items = transform(try_variant_get(value, "$", "array<variant>"), lambda item: _unknown(item, _element(kind)))
    return when(exists(items, lambda item: item.isNotNull()), parse_json(to_json(items)))


def _has_fields(kind: DataType) -> bool:
    if isinstance(kind, MapType):
        return _has_fields(kind.valueType)
    return isinstance(kind, StructType) or (isinstance(kind, ArrayType) and _has_fields(kind.elementType))


def _element(kind: DataType) -> DataType:
    return kind.elementType if isinstance(kind, ArrayType) else kind


def _texts(values: list[str]) -> Column:
    return array(*map(lit, values)).cast("array<string>")
