"""When Spark's parser is asked, and when its cached answers apply."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import load
from sqlstream.app.loading.spark_parser import InstalledParser
from sqlstream.app.request import silent
from sqlstream.compiler.spark_versions import ParserUnavailableError
from sqlstream.project.configuration.target import Target


def target(root: Path, settings: str) -> Target:
    """Returns the target of a project with these settings."""
    (root / "models").mkdir(exist_ok=True)
    (root / "project.yml").write_text(f"name: shop\ntargets: {{local: {{{settings}}}}}\n")
    return load(ProjectRequest(root, env={})).compiled.project.target


@pytest.mark.parametrize("settings", ["spark: {spark.sql.extensions: a.B}", "remote: 'sc://elsewhere'"])
def test_a_target_with_other_sql_does_not_use_the_parser(tmp_path: Path, settings: str) -> None:
    """If the target's Spark may accept other SQL, because of extensions or Spark Connect, the parser is not asked."""
    parser = InstalledParser(target(tmp_path, settings), {}, silent)

    with pytest.raises(ParserUnavailableError, match="target `local`"), parser.open(1):
        pass


def test_an_answer_applies_to_the_same_sql_settings(tmp_path: Path) -> None:
    """A cached answer applies while the SQL settings are the same; other settings of the target do not matter."""
    plain = InstalledParser(target(tmp_path, "master: 'local[1]'"), {}, silent).identity
    more_memory = InstalledParser(target(tmp_path, "spark: {spark.driver.memory: 2g}"), {}, silent).identity
    other_sql = InstalledParser(target(tmp_path, "spark: {spark.sql.ansi.enabled: 'false'}"), {}, silent).identity

    assert plain == more_memory != other_sql
