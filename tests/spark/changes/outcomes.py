"""Counts what happened to judged edits, and describes those that went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.spark.changes.edits import ASK
from tests.spark.changes.worlds import Judged

IN_VAIN = 0.05
"""The greatest share of random edits that `run` may refuse although the results agree."""

RIGHTLY_RESUMED, RIGHTLY_REFUSED = "resumed rightly", "refused rightly"
REFUSED_IN_VAIN, SILENT = "refused in vain", "silent corruptions"
ASKED = "asked"
_NAMES = {
    ("resume", "resume"): RIGHTLY_RESUMED,
    ("refuse", "refuse"): RIGHTLY_REFUSED,
    ("refuse", "resume"): REFUSED_IN_VAIN,
    ("resume", "refuse"): SILENT,
    (ASK, "resume"): ASKED,
    (ASK, "refuse"): ASKED,
}


@dataclass
class Outcomes:
    """The judged edits of all parts, and the problems of parts: edits that the matrix describes wrongly, contradictory
    plans, parts that failed.
    """

    judged: dict[str, list[Judged]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, kind: str, judged: Sequence[Judged], problems: Sequence[str] = ()) -> str:
        """Adds the results of one part, and returns its counts and a description of what went wrong."""
        self.judged.setdefault(kind, []).extend(judged)
        self.problems += problems
        # those of the matrix are problems
        wrong = [each for each in judged if kind == "random" and outcome_of(each) in (REFUSED_IN_VAIN, SILENT)]
        return "\n\n".join([_counts(judged), *map(described, wrong), *problems])

    @property
    def failures(self) -> list[str]:
        """Why the whole fails; empty if it does not."""
        silent = self._all(SILENT)
        random = self.judged.get("random", [])
        vain = [each for each in random if outcome_of(each) == REFUSED_IN_VAIN]
        found = [f"{len(silent)} silent corruptions"] if silent else []
        found += [f"{len(self.problems)} problems"] if self.problems else []
        if len(vain) > IN_VAIN * len(random):
            found.append(f"{len(vain)} of {len(random)} random edits are refused in vain, more than {IN_VAIN:.0%}")
        return found

    def summary(self) -> str:
        """Returns the counts by the kind of query, the edits that went wrong, and whether all of it fails."""
        lines = [""]
        for kind, judged in self.judged.items():
            if judged:
                lines += [f"{kind}: {len(judged)} edits, {_counts(judged)}", *_by_query(judged)]
        for outcome in (REFUSED_IN_VAIN, SILENT):
            lines += [
                f"{outcome}: {each.edit.name} ({each.edit.kind}: {each.edit.text})" for each in self._all(outcome)
            ]
        return "\n".join([*lines, *(f"FAILED: {each}" for each in self.failures)])

    def _all(self, outcome: str) -> list[Judged]:
        return [each for judged in self.judged.values() for each in judged if outcome_of(each) == outcome]


def outcome_of(found: Judged) -> str:
    """Returns in which of the four ways an edit ended."""
    return _NAMES[found.verdict, found.right]


def described(found: Judged) -> str:
    """Returns what happened to an edit."""
    edit = found.edit
    expected = f", the matrix says {edit.expected}" if edit.expected else ""
    lines = (
        f"{edit.name} ({edit.text}): run does {found.verdict}, right is {found.right}{expected}",
        edit.sql(changed=False),
        edit.sql(changed=True),
        found.refusal or "",
        found.error or "",
    )
    return "\n".join(lines)


def _by_query(judged: Sequence[Judged]) -> list[str]:
    kinds = dict.fromkeys(each.edit.kind for each in judged)
    return [f"  {kind}: {_counts([each for each in judged if each.edit.kind == kind])}" for kind in kinds]


def _counts(judged: Sequence[Judged]) -> str:
    if not judged:
        return "none judged"
    counts = Counter(map(outcome_of, judged))
    names = [name for name in dict.fromkeys(_NAMES.values()) if counts[name] or name != ASKED]
    return ", ".join(f"{counts[name]} {name}" for name in names)
