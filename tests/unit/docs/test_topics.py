"""The hand-written pages cover their topics completely."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from sqlstream.app.run.runner import GRACE_SECONDS
from sqlstream.codes import CODES
from sqlstream.project.configuration.config import ModelConfig, SeedConfig
from sqlstream.project.configuration.trigger import Retries
from sqlstream.state.runs.silence import Cause
from tests.tools.doc_blocks import ROOT

CONFIGURATION, DEPLOYING, ERRORS, RULES, RUN, TROUBLESHOOTING = (
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("configuration.md", "deploying.md", "errors.md", "rules.md", "commands/run.md", "troubleshooting.md")
)


@pytest.mark.parametrize("cause", Cause)
def test_every_silence_is_explained(cause: Cause) -> None:
    """Every reason for missing rows is a row on the page of `run`, and a symptom with a fix."""
    assert f"| `{cause}` |" in RUN
    assert f"| `{cause}` |" in TROUBLESHOOTING


@pytest.mark.parametrize("model", [ModelConfig, SeedConfig], ids=lambda model: str(model.__name__))
def test_every_key_of_config_is_in_the_table(model: type[ModelConfig | SeedConfig]) -> None:
    """The table has every configuration key, including nested keys such as the delays of `retries`."""
    table = CONFIGURATION.split(f"<!-- keys of {model.__name__} -->")[1].split("<!-- end of keys -->")[0]
    below = [field.name for field in fields(Retries)] if model is ModelConfig else []

    assert [key for key in model.model_fields if f"| `{key}` |" not in table] == []
    assert [key for key in below if f"`{key}`" not in table] == []


def test_every_rule_is_linked_to_its_code() -> None:
    """Each code that docs/rules.md links has a section in docs/errors.md."""
    codes = set(re.findall(r"\[([a-z-]+)\]\(errors\.md#\1\)", RULES))

    assert len(codes) > 50
    assert codes <= set(CODES)
    assert all(f"\n### {code}\n" in ERRORS for code in codes)


def test_every_code_of_a_running_project_is_a_symptom() -> None:
    """Every code that only Java, Spark or checkpoints can raise is listed as a symptom."""
    tail = ERRORS.split("\n## Java and Spark\n")[1]
    codes = re.findall(r"(?m)^### (\S+)$", tail)

    assert [code for code in codes if f"](errors.md#{code})" not in TROUBLESHOOTING] == []


def test_a_supervisor_waits_longer_than_sqlstream() -> None:
    """The supervisor's timeouts allow twice the grace period of sqlstream and 20 seconds for the end of the run."""
    assert f"takes longer than {GRACE_SECONDS:.0f} seconds" in DEPLOYING
    waits = [
        int(wait) for wait in re.findall(r"(?:TimeoutStopSec=|--stop-timeout |GracePeriodSeconds: )(\d+)", DEPLOYING)
    ]
    assert len(waits) >= 3
    assert min(waits) >= 2 * GRACE_SECONDS + 20
