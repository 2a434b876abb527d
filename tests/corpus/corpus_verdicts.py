"""Reads and writes Spark's recorded verdicts in verdicts.json, which only `make corpus` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

VERDICTS = Path(__file__).parent / "verdicts.json"


@dataclass(frozen=True)
class Verdict:
    """Whether Spark accepted a query, or the `stage` at which it refused it: `analysis`, `start` or `batch`.

    `condition` is the error condition, if there is one. `rows` is the number of rows that an accepted query emitted. It
    is not recorded, because some sources create rows depending on the time.
    """

    accepted: bool
    stage: str | None = None
    condition: str | None = None
    message: str | None = None
    rows: int | None = None

    def as_json(self) -> dict[str, object]:
        """Returns the recorded form."""
        if self.accepted:
            return {"verdict": "accepted"}
        recorded = {key: value for key, value in asdict(self).items() if key in ("stage", "condition", "message")}
        return {"verdict": "refused", **{key: value for key, value in recorded.items() if value is not None}}

    @property
    def words(self) -> str:
        """The verdict on one line."""
        if self.accepted:
            return "accepted"
        condition = f"[{self.condition}] " if self.condition else ""
        return f"refused at {self.stage}: {condition}{self.message}"


def read_verdicts() -> dict[str, Verdict]:
    """Returns the recorded verdicts by the names of their cases. Empty before the first `make corpus`."""
    if not VERDICTS.exists():
        return {}
    recorded = json.loads(VERDICTS.read_text(encoding="utf-8"))["cases"]
    return {name: _verdict(raw) for name, raw in recorded.items()}


def recorded_version() -> str:
    """Returns the Spark version of the recorded verdicts."""
    return str(json.loads(VERDICTS.read_text(encoding="utf-8"))["spark"])


def write_verdicts(verdicts: Mapping[str, Verdict], spark_version: str) -> None:
    """Records `verdicts`, one per line, with their Spark version."""
    cases = [f"  {_text(name)}: {_text(verdict.as_json())}" for name, verdict in verdicts.items()]
    text = f'{{\n"spark": {_text(spark_version)},\n"cases": {{\n' + ",\n".join(cases) + "\n}}\n"
    VERDICTS.write_text(text, encoding="utf-8")


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _verdict(raw: Mapping[str, str]) -> Verdict:
    if raw["verdict"] == "accepted":
        return Verdict(True)
    return Verdict(False, raw["stage"], raw.get("condition"), raw.get("message"))
