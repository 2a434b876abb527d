"""The table of formats is consistent, and unknown formats have no restrictions."""

from __future__ import annotations

import pytest

from sqlstream.project.formats.format import BOTH, Format
from sqlstream.project.formats.formats import FORMATS, format_of


def test_an_unknown_format_has_no_restrictions() -> None:
    """No rule refuses an unknown format, because Spark accepts any installed data source."""
    custom = format_of("custom")

    assert (custom.reads, custom.writes, custom.option_names("stream"), custom.option_names("")) == (
        BOTH,
        BOTH,
        None,
        None,
    )


@pytest.mark.parametrize("facts", FORMATS.values(), ids=FORMATS)
def test_named_options_exist(facts: Format) -> None:
    """Each option that a format needs, or that adds columns, is listed among its options."""
    names = {option.name for option in facts.required} | {facts.optional_columns[0]} - {""} | {*facts.address_options}
    known = facts.option_names("stream")

    unknown = {name for name in names if facts.client_prefix == "" or not name.startswith(facts.client_prefix)}
    assert known is None or unknown <= known


def test_options_ignore_letter_case_and_know_their_use() -> None:
    """The table knows that Spark ignores the case of option names, and uses some options only in streams."""
    csv = format_of("csv")

    assert csv.values_of("HEADER", streams=False) is csv.options["header"].takes
    assert csv.values_of("maxFilesPerTrigger", streams=False) is None
    assert csv.values_of("maxFilesPerTrigger", streams=True) is not None


def test_an_option_can_add_columns() -> None:
    """The Kafka format has the column `headers` only if an option asks for it."""
    kafka = format_of("kafka")

    assert (kafka.columns_with({"includeheaders": "TRUE"}) or "").endswith("value: binary>>")
    assert kafka.columns_with({"includeHeaders": "false"}) == kafka.columns
