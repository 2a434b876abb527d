"""Reads the cases of the corpus from the YAML files in cases/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sqlstream.project.values import ModelFile

FOLDER = Path(__file__).parent
CASES = FOLDER / "cases"
PROJECT = FOLDER / "project"
NOT_YET = FOLDER / "not_yet.txt"
"""Names of refused cases that no rule finds yet. The list should become empty."""

KEYS = {"name", "from", "spark", "mode", "sink", "trigger", "views", "sql", "static", "because", "own", "wrong"}
REQUIRED = {"name", "spark", "sql"}


@dataclass(frozen=True)
class Case:
    """One streaming query: the SQL of its terminal model and its views, and how it starts.

    `source` names the Spark test or the section of Spark's guide that has this form (None: written for this corpus).
    `refused` is whether Spark refuses it, according to the recorded verdict. `unknown_because` is the reason why a
    compiler cannot know that without Spark. `own` is the code of a finding that is about sqlstream, not about Spark.
    `wrong` describes the problem if Spark runs the query but returns no rows or wrong rows. Then sqlstream must report a
    finding of any severity.
    """

    name: str
    theme: str
    sql: str
    views: Mapping[str, str]
    mode: str
    sink: str
    trigger: str
    refused: bool
    source: str | None
    unknown_because: str | None
    own: str | None
    wrong: str | None

    @property
    def models(self) -> tuple[ModelFile, ...]:
        """The model files of the case. The terminal model is last and has the name of the case."""
        config = f"{{{{ config(sink='{self.sink}', output_mode='{self.mode}', trigger={self.trigger}) }}}}"
        texts = {**self.views, self.name: f"{config}\n{self.sql}"}
        return tuple(ModelFile(name, f"models/{name}.sql", text, (), "", (), ()) for name, text in texts.items())


def read_cases() -> list[Case]:
    """Returns all cases in the order of their files. Raises: ValueError for an invalid case."""
    cases = [_case(path.stem, raw) for path in sorted(CASES.glob("*.yml")) for raw in _load(path)]
    names = [case.name for case in cases]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"several cases are named {', '.join(sorted(repeated))}")
    return cases


def _load(path: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return cases


def _case(theme: str, raw: dict[str, Any]) -> Case:
    name = raw.get("name")
    if not raw.keys() >= REQUIRED or not raw.keys() <= KEYS or raw["spark"] not in ("accepts", "refuses"):
        raise ValueError(f"{theme}: {name} does not have the form that README.md describes")
    if ("static" in raw) != ("because" in raw) or raw.get("static") not in (None, "unknown"):
        raise ValueError(f"{theme}: {name} needs both `static: unknown` and `because:`, or neither")
    return Case(
        name=str(name),
        theme=theme,
        sql=raw["sql"],
        views=raw.get("views", {}),
        mode=raw.get("mode", "append"),
        sink=raw.get("sink", "nowhere"),
        trigger=repr(raw.get("trigger", "available_now")),
        refused=raw["spark"] == "refuses",
        source=raw.get("from"),
        unknown_because=raw.get("because"),
        own=raw.get("own"),
        wrong=raw.get("wrong"),
    )
