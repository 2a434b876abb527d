"""`target/test_results.json`: the last result of each unit test."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlstream.app.loading.atomic_writes import write_file
from sqlstream.app.loading.load import Loaded
from sqlstream.errors import UsageError
from sqlstream.report.unit_tests_text import failure_text
from sqlstream.state.runs.unit_tests import CaseResult, Outcome
from sqlstream.times import utc_now
from sqlstream.version import __version__

TEST_RESULTS = "test_results.json"


def record_results(loaded: Loaded, results: Sequence[CaseResult], existing: Collection[str]) -> None:
    """Writes `results`. Earlier results of other tests stay if the test is one of `existing`, which are full names.

    Does nothing if target/ cannot be written: the results have been printed.
    """
    now = utc_now()
    before = {name: entry for name, entry in read_results(loaded.target_folder).items() if name in existing}
    found = {result.full_name: _entry(result, now) for result in results if result.model is not None}
    content = {
        "metadata": {"sqlstream_version": __version__, "generated_at": now},
        "results": dict(sorted({**before, **found}.items())),
    }
    with suppress(UsageError):
        write_file(str(loaded.target_folder / TEST_RESULTS), json.dumps(content, indent=2).encode() + b"\n")


def _entry(result: CaseResult, at: str) -> dict[str, object]:
    is_bad = result.outcome in (Outcome.FAILED, Outcome.BROKEN)
    return {
        "model": result.model,
        "status": str(result.outcome),
        "at": at,
        "seconds": round(result.seconds, 3),
        "message": failure_text(result, None) if is_bad else None,
    }


def read_results(target_folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Returns the last result of each unit test by its full name: `model`, `status`, `at` (UTC, ISO 8601), `seconds`,
    and `message` if it failed. Empty if no test has run since `clean`.
    """
    try:
        found = json.loads((target_folder / TEST_RESULTS).read_bytes())["results"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
