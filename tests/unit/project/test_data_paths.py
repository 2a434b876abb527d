"""Data paths as text."""

from __future__ import annotations

import pytest

from sqlstream.project.files.paths import plain_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a", "/store/a"),
        ("./a//b/../c/", "/store/a/c"),
        ("/a/", "/a"),
        ("file:/a", "/a"),
        ("file:///a", "/a"),
        ("s3a://bucket//a/", "s3a:/bucket/a"),
    ],
)
def test_paths_have_one_spelling(path: str, expected: str) -> None:
    """Different spellings of a location become one, so that two paths can be compared."""
    assert plain_path("/store", path) == expected
