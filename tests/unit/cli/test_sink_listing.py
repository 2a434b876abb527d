"""`sqlstream ls --resource-type sink`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlstream.cli.main import main

REPOSITORY = Path(__file__).parents[3]


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Returns the lines that the command prints for the worked examples."""
    with pytest.raises(SystemExit) as ended:
        main(["ls", "--project-dir", str(REPOSITORY), *arguments])
    assert ended.value.code == 0
    return capsys.readouterr().out.splitlines()


def test_sinks_are_listed_with_their_guarantees(capsys: pytest.CaptureFixture[str]) -> None:
    """Each sink says per mode how often a row arrives, and how; a selection lists the sinks of its models."""
    sinks = [json.loads(line) for line in listed(capsys, "--resource-type", "sink", "--output", "json")]
    guarantees = {sink["name"]: sink["guarantees"] for sink in sinks}

    assert guarantees["warehouse"]["append"]["rows"] == "exactly once"
    assert guarantees["console"]["update"]["rows"] == "at least once"
    assert listed(capsys, "--resource-type", "sink", "-s", "activity_counts+") == ["sink:examples.results"]
