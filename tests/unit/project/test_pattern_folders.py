"""Where the pattern in the path of a source begins."""

from __future__ import annotations

import pytest

from sqlstream.project.files.paths import alternatives_of, folder_of_pattern

ROOT = "/p/depot [v2]"


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        (f"{ROOT}/in", f"{ROOT}/in"),
        (f"{ROOT}/./in/", f"{ROOT}/in"),
        (f"{ROOT}/in/*.json", f"{ROOT}/in"),
        (f"{ROOT}/in/day=*/x", f"{ROOT}/in"),
        (f"{ROOT}/in [old]", f"{ROOT}/in [old]"),
        (f"{ROOT}/in [new]", ROOT),
        ("/data/in [x]/1", "/data"),
        ("/{a,b}/1", "/"),
        ("s3://lake/in/{a,b}", "s3:/lake/in"),
    ],
)
def test_a_pattern_begins_behind_the_folder_of_the_project(path: str, folder: str) -> None:
    """A name that exists is no pattern either."""
    assert folder_of_pattern(path, ROOT, lambda name: name.endswith("[old]")) == folder


def test_braces_of_the_folder_are_no_alternatives() -> None:
    """Only those of the pattern are."""
    found = list(alternatives_of("/p/a{b,c}/in/{x,y}/{1,2}", "/p/a{b,c}/in"))

    assert found == [f"/p/a{{b,c}}/in/{name}/{number}" for name in "xy" for number in "12"]
