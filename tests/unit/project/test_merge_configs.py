"""Configuration patches merge into one, as in the compiler."""

from __future__ import annotations

from typing import Any

import pytest

from sqlstream.location import Location
from sqlstream.project.configuration.config import (
    ConfigPatch,
    ModelConfig,
    SeedConfig,
    check_patch,
    merge_configs,
)
from sqlstream.project.configuration.trigger import TRIGGERS, Trigger, TriggerKind, parse_trigger
from sqlstream.project.yaml import Located

LOW = Location("project.yml", 3, 1)
HIGH = Location("models/a.sql", 1, 11)


def patch(location: Location = HIGH, **values: Any) -> ConfigPatch:
    """Returns a patch whose keys all have one location."""
    return {key: Located(value, location) for key, value in values.items()}


def test_no_patches_give_the_defaults() -> None:
    """A model without configuration is an enabled view."""
    merged = merge_configs([])
    assert merged.config == ModelConfig()
    assert (merged.locations, merged.findings) == ({}, ())


def test_later_patches_win_and_keep_their_locations() -> None:
    """The last value wins and keeps its location; tags add up, options and meta merge by key."""
    low = patch(LOW, sink="a", tags="x", options={"n": 1, "b": True}, meta={"k": 1}, partition_by="day")
    high = patch(sink="b", tags=["y", "x"], options={"n": 2.5}, meta={"l": [1]})
    merged = merge_configs([low, high])
    assert merged.config is not None
    assert (merged.config.sink, merged.config.tags, merged.config.partition_by) == ("b", ("x", "y"), ("day",))
    assert merged.config.options == {"n": "2.5", "b": "true"}
    assert merged.config.meta == {"k": 1, "l": [1]}
    assert (merged.locations["sink"], merged.locations["partition_by"]) == (HIGH, LOW)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"snik": "a"}, "unknown-key"),
        ({"sink": 5}, "invalid-value"),
        ({"output_mode": "apend"}, "invalid-value"),
        ({"enabled": "perhaps"}, "invalid-value"),
        ({"tags": 5}, "invalid-value"),
        ({"tags": ["a", {"b": 1}]}, "invalid-value"),
        ({"partition_by": {"a": 1}}, "invalid-value"),
        ({"options": {"a": {"b": 1}}}, "invalid-value"),
        ({"options": "a"}, "invalid-value"),
        ({"meta": []}, "invalid-value"),
        ({"trigger": {"continous": "1 second"}}, "invalid-value"),
        ({"previous_name": "a b"}, "invalid-value"),
    ],
)
def test_wrong_patch_is_a_located_finding(values: dict[str, Any], code: str) -> None:
    """Unknown keys and wrong values are located where they were set, in a patch and in the merged configuration."""
    merged = merge_configs([patch(LOW, tags=["low"]), patch(**values)])
    assert merged.config is None
    assert [(finding.code, finding.location) for finding in merged.findings] == [(code, HIGH)]
    assert [finding.code for finding in check_patch(patch(**values))] == [code]


def test_a_template_is_no_value() -> None:
    """A template in a YAML patch is not checked there, but is invalid as the final value of a key."""
    values = patch(trigger="{{ every }}")
    assert check_patch(values) == ()
    assert [(finding.code, finding.location) for finding in merge_configs([values]).findings] == [
        ("invalid-value", HIGH)
    ]


def test_seeds_have_fewer_keys() -> None:
    """A seed takes fewer keys than a model: it has no sink."""
    assert [finding.code for finding in check_patch(patch(sink="a"), SeedConfig)] == ["unknown-key"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("10 seconds", Trigger("interval", "10 seconds")),
        (" 1 Minute  30 SECONDS", Trigger("interval", "1 minute 30 seconds")),
        ("interval 2 weeks", Trigger("interval", "2 weeks")),
        ("0.5 seconds", Trigger("interval", "0.5 seconds")),
        ("available_now", Trigger("available_now")),
        ("once", Trigger("once")),
        ("default", Trigger()),
        ({"continuous": "1 second"}, Trigger("continuous", "1 second")),
        ({"real_time": "5 minutes"}, Trigger("real_time", "5 minutes")),
    ],
)
def test_triggers(value: object, expected: Trigger) -> None:
    """Each way to write a trigger gives its kind and interval."""
    merged = merge_configs([patch(trigger=value)])
    assert merged.config is not None
    assert merged.config.trigger == expected


@pytest.mark.parametrize("kind", TRIGGERS)
def test_each_kind_of_trigger_is_written_as_its_row_says(kind: TriggerKind) -> None:
    """A word has no interval, and what Spark refuses under a kind has a code and words for messages."""
    facts = TRIGGERS[kind]
    written = {"word": kind, "interval": "10 seconds", "mapping": {kind: "10 seconds"}}[facts.written]

    trigger = parse_trigger(written)

    assert trigger == Trigger(kind, None if facts.written == "word" else "10 seconds")
    assert bool(facts.code) == bool(facts.words) == (not facts.has_micro_batches)


@pytest.mark.parametrize(
    "value",
    [
        "10s",
        "0 seconds",
        "-5 seconds",
        "ten seconds",
        "10 fortnights",
        "1.5 minutes",
        "availablenow",
        "",
        5,
        True,
        ["once"],
        {},
        {"continuous": "soon"},
        {"continuous": "1 second", "real_time": "1 second"},
        "1 second " * 10_000,
        "1" * 100_000 + " second",
    ],
)
def test_bad_triggers_are_refused_with_an_example(value: object) -> None:
    """A trigger that Spark would not accept is refused with an example."""
    (finding,) = merge_configs([patch(trigger=value)]).findings
    assert (finding.code, finding.location) == ("invalid-value", HIGH)
    assert "`" in finding.fix or "use" in finding.fix
