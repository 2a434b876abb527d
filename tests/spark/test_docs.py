"""Console examples in the documentation that need Spark print what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.doc_blocks import Block, blocks
from tests.tools.doc_runs import copied_examples, fresh_shop, missing_lines, needs_spark, normalize, run_block

SPARK_BLOCKS = [block for block in blocks("console") if needs_spark(block)]


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The worked examples and a fresh project; each block sees the files that earlier blocks wrote."""
    folder = tmp_path_factory.mktemp("docs")
    return {True: copied_examples(folder), False: fresh_shop(folder)}


@pytest.mark.slow
@pytest.mark.parametrize("block", [pytest.param(block, id=str(block)) for block in SPARK_BLOCKS])
def test_commands_print_what_the_page_shows(block: Block, projects: dict[bool, Path]) -> None:
    """Each block prints the lines shown, except for figures and times; the order of lines does not matter."""
    assert missing_lines(block, run_block(block, projects[block.of_examples]), normalize) == []


def test_few_blocks_need_spark() -> None:
    """Few blocks start Spark, because each start is slow; a block that repeats another one should be a `text` block."""
    assert 0 < len(SPARK_BLOCKS) <= 4
