"""Secrets are inserted into options for Spark, and masked everywhere else."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from sqlstream.location import Location
from sqlstream.project.secret_text import OptionValue, SecretName, SecretText
from sqlstream.spark.secrets import MASK, Secrets, secret_names
from sqlstream.spark.writing.micro_batches import MicroBatch

USER, PASSWORD = SecretName("SQLSTREAM_SECRET_USER"), SecretName("SQLSTREAM_SECRET_PASSWORD")
URL = SecretText(("jdbc://", USER, ":", PASSWORD, "@host"))
ENV = {"SQLSTREAM_SECRET_USER": "reader", "SQLSTREAM_SECRET_PASSWORD": "hunter22", "HOME": "/home/reader-of-logs"}
SINK = Location("sinks.yml", 4, 7)
KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n  kqhkiG9w0BAQ\r\nab\n-----END KEY-----\n"


def masking(*values: str) -> Secrets:
    """Returns secrets with these values."""
    return Secrets({f"SQLSTREAM_SECRET_{number}": value for number, value in enumerate(values)})


def test_a_secret_is_inserted_into_its_option() -> None:
    """A secret replaces only its reference; text around it and other options do not change."""
    options: dict[str, OptionValue] = {"url": URL, "dbtable": "orders"}

    assert Secrets(ENV).resolve_all(options) == {"url": "jdbc://reader:hunter22@host", "dbtable": "orders"}


def test_each_secret_that_is_not_set_is_a_finding() -> None:
    """Each secret that is not set has one finding at the location of the options; an empty value counts as set."""
    options: dict[str, OptionValue] = {"url": URL, "again": SecretText((PASSWORD,)), "plain": "SQLSTREAM_SECRET_OTHER"}

    findings = Secrets({"SQLSTREAM_SECRET_USER": ""}).missing(options, SINK)

    assert [(finding.code, finding.location) for finding in findings] == [("missing-env-var", SINK)]
    assert "SQLSTREAM_SECRET_PASSWORD" in findings[0].message
    assert Secrets(ENV).missing(options, SINK) == []


def test_names_are_in_order_and_unique() -> None:
    """Each secret is named once, in order; plain options have none."""
    assert secret_names(["x", URL, SecretText((USER,))]) == [USER.name, PASSWORD.name]


@pytest.mark.parametrize(
    ("values", "text", "shown"),
    [
        (("hunter22",), "password=hunter22; hunter22!", "password=*****; *****!"),
        (("hunter22",), "nothing here", "nothing here"),
        (("hunter22",), "", ""),
        (("hunter", "hunter22"), "hunter22 and hunter", "***** and *****"),
        (("abcdef", "defghi"), "<abcdefghi>", "<*****>"),
        (("abab",), "<ababab>", "<*****>"),
        (("a.*b",), "axxb a.*b", "axxb *****"),
        (("hunter22\n",), "hunter22", "*****"),
        (("abc",), "abc", "abc"),
    ],
    ids=[
        "twice",
        "absent",
        "empty",
        "contained",
        "overlapping",
        "with-itself",
        "no-pattern",
        "line-break",
        "too-short",
    ],
)
def test_values_are_masked(values: tuple[str, ...], text: str, shown: str) -> None:
    """Overlapping secrets are masked completely, in any order."""
    assert masking(*values).redact(text) == shown
    assert masking(*reversed(values)).redact(text) == shown


def test_a_secret_of_several_lines_is_masked_line_by_line() -> None:
    """Each line of a secret is masked, because logs arrive line by line; only very short lines stay."""
    secrets = masking(KEY)

    assert secrets.redact(f"key: {KEY.strip()}.") == f"key: {MASK}."
    assert [secrets.redact(line) for line in KEY.splitlines()] == [MASK, MASK, f"  {MASK}", "ab", MASK]


@pytest.mark.parametrize("value", ['p"ss\\w0rd', "p@ss/w0rd&", KEY, "größe-ß-数"])
def test_a_secret_is_found_in_json_and_urls(value: str) -> None:
    """The forms of a secret in JSON and in URLs are masked too."""
    secrets = masking(value)

    assert secrets.redact(json.dumps({"x": value.strip()})) == f'{{"x": "{MASK}"}}'
    assert secrets.redact(f"u:{quote(value.strip(), safe='')}@h") == f"u:{MASK}@h"


def test_invalid_bytes_in_the_environment_are_accepted() -> None:
    """Bytes of the environment that are not text, which Python represents as lone surrogates, cause no error."""
    assert masking("caf\udce9s").redact("a caf\udce9s b") == "a ***** b"


def test_only_secrets_are_masked() -> None:
    """Values of other environment variables are not masked."""
    assert Secrets(ENV).redact(ENV["HOME"]) == "/home/*****-of-logs"
    assert Secrets({"HOME": "/home/me"}).redact("/home/me") == "/home/me"


def test_a_micro_batch_does_not_show_its_options() -> None:
    """Options have the values of secrets, so the text of a batch leaves them out."""
    batch = MicroBatch(3, "query", "orders", "append", ("id",), {"password": "hunter2"})

    assert "hunter2" not in repr(batch)
    assert "orders" in repr(batch)
