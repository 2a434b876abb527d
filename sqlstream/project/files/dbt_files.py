"""Files and folders of dbt projects that sqlstream does not read."""

from __future__ import annotations

from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.files.files import DBT_PROJECT_FILE, ProjectFiles
from sqlstream.project.wording import counted

_SNAPSHOTS = "sqlstream has no snapshots: read the changes as a stream and write them to a sink"
_ANALYSES = "use a model without a sink, or show its rows with `sqlstream show --inline`"
_PACKAGES = "sqlstream has no packages: copy the macros that you need into macros/"
_TESTS = "sqlstream has no data tests: test the models with `unit_tests:` in YAML files in models/ or tests/models/"

_ROOT_ENTRIES = {
    "analyses/": _ANALYSES,
    "analysis/": _ANALYSES,
    DBT_PROJECT_FILE: "move its settings to project.yml, whose `targets:` also replace profiles.yml",
    "dependencies.yml": _PACKAGES,
    "packages.yml": _PACKAGES,
    "profiles.yml": "define each of its outputs in `targets:` of project.yml",
    "snapshots/": _SNAPSHOTS,
}
"""The replacements for files and folders at the root of a dbt project."""


def unread_files(files: ProjectFiles) -> list[Finding]:
    """Returns a warning for each file or folder that only dbt reads, one for a folder of tests."""
    found = [_unread(path, fix) for path, fix in _ROOT_ENTRIES.items() if files.exists(path.rstrip("/"))]
    for folder in ("tests", "tests/generic"):
        tests = [path for path in files.files_in(folder) if path.endswith(".sql")]
        others = (
            f", and neither {'is' if len(tests) == 2 else 'are'} {counted(len(tests) - 1, 'other file')} in the "
            "same folder"
            if len(tests) > 1
            else ""
        )
        found += [_unread(tests[0], _TESTS, others)] if tests else []
    return found


def _unread(path: str, fix: str, others: str = "") -> Finding:
    return Finding(
        "dbt-file",
        f"`{path}` is not read{others}",
        "it is a part of dbt that sqlstream does not have",
        fix,
        Location(path.rstrip("/")),
        Severity.WARNING,
    )
