"""Which edits of the project's Python change a query, found without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import load
from sqlstream.project.files import python_code
from sqlstream.state.changes import describe_changes
from sqlstream.state.identity import identity_of
from sqlstream.state.judgement import judge_changes
from sqlstream.state.ledger import QueryIdentity, read_ledger
from sqlstream.state.readers import source_uses
from sqlstream.state.signature.signature import InputRows, StateOperator, StateSignature
from tests.support.identities import ledger_of

UDF = """\
from pyspark.sql.functions import udf
from helpers import doubled


@udf("int")
def scored(value):
    return doubled(value) + 1
"""

FILES = {
    "project.yml": "name: shop\nfunctions: [texts:scored]\ntargets: {local: {master: local, storage: s}}\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n"
    "      - {name: orders, format: json, path: in, schema: 'k string, v int'}\n"
    "      - {name: ticks, format: python, class: 'feeds:Ticks', schema: 'k string, v int'}\n",
    "sinks.yml": "sinks:\n  - {name: out, format: python, function: 'sends:send'}\n",
    "models/totals.sql": "{{ config(sink='out', output_mode='update') }}\n"
    "select k, sum(scored(v)) as total from {{ source('shop', 'orders') }} group by k",
    "models/made.py": "from helpers import doubled\n\n\ndef model(sqlstream, spark):\n"
    "    sqlstream.config(sink='out', output_mode='update')\n"
    "    return sqlstream.source('shop', 'orders').groupBy('k').count()\n",
    "models/ticked.sql": "{{ config(sink='out', output_mode='update') }}\n"
    "select k, count(*) as n from {{ source('shop', 'ticks') }} group by k",
    "python/texts.py": UDF,
    "python/helpers.py": "from deep.low import FACTOR\n\n\ndef doubled(value):\n    return value * FACTOR\n",
    "python/deep/__init__.py": "",
    "python/deep/low.py": "FACTOR = 2\n",
    "python/unread.py": "NOTHING = 1\n",
    "python/sends.py": "def send(rows, batch): ...\n",
    "python/feeds.py": "from pyspark.sql.datasource import DataSource\n\n\nclass Ticks(DataSource): ...\n\n\n"
    "class Others(DataSource): ...\n",
    "python/rates.json": "{}",
    "data/rates.csv": "a",
}
CALLS_PYTHON = StateSignature(
    (StateOperator("aggregation", {"keys": ("k",)}, (InputRows("shop.orders"),)),),
    "update",
    (),
    "4.3.0",
    calls_python=True,
)
MODELS = ("totals", "made", "ticked")


def identities(root: Path, edits: Mapping[str, str] = {}) -> dict[str, QueryIdentity]:
    """Returns the stateful queries of the project with the edited files, by model."""
    for name, text in {**FILES, **edits}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    compiled = load(ProjectRequest(root, env={})).compiled
    return {
        found.name: identity_of(compiled, found, source_uses(compiled, found, None), None, stateful=True, settings={})
        for found in compiled.models.values()
    }


def identity(root: Path, model: str, edits: Mapping[str, str] = {}) -> QueryIdentity:
    """Returns the stateful query of `model` in the project with the edited files."""
    return identities(root, edits)[model]


def verdict(old: QueryIdentity, new: QueryIdentity) -> str:
    """Returns what a run does with the query, whose plan stays the same and whose state calls Python."""
    changes = describe_changes(old, new)
    ledger = replace(ledger_of(old), signature=CALLS_PYTHON)
    judgement = judge_changes(ledger, new, changes, lambda _format: CALLS_PYTHON)
    if judgement.unknown is not None:
        return "ask"
    return ("resume" if changes else "unchanged") if judgement.is_safe else "refuse"


def verdicts(root: Path, edits: Mapping[str, str], before: Mapping[str, str] = {}) -> dict[str, str]:
    """Returns the verdict on each query after `edits` of the project with the files `before`."""
    old, new = identities(root, before), identities(root, {**before, **edits})
    return {model: verdict(old[model], new[model]) for model in MODELS}


NONE = dict.fromkeys(MODELS, "unchanged")
BOTH = {**NONE, "totals": "ask", "made": "ask"}
MOVED = FILES["project.yml"].replace("texts:scored", "other:scored")
OTHER_CLASS = {"sources.yml": FILES["sources.yml"].replace("feeds:Ticks", "feeds:Others")}
OTHER_CODE = {"python/feeds.py": FILES["python/feeds.py"] + "\n\nMOST = 5\n"}
OTHER_FACTOR = {"python/deep/low.py": "FACTOR = 3\n"}


@pytest.mark.parametrize(
    ("edits", "asked"),
    [
        ({"python/texts.py": UDF.replace("+ 1", "+ 2")}, ["totals"]),
        ({"python/helpers.py": "def doubled(value):\n    return value * 3\n"}, ["totals", "made"]),
        (OTHER_FACTOR, ["totals", "made"]),
        ({"python/deep/__init__.py": "import sys\n"}, ["totals", "made"]),
        ({"python/unread.py": "NOTHING = 2\n"}, []),
        ({"python/new.py": "NOTHING = 2\n"}, []),
        (OTHER_CODE, ["ticked"]),
        (OTHER_CLASS, ["ticked"]),
        ({"project.yml": MOVED, "python/other.py": UDF.replace("+ 1", "+ 2")}, ["totals"]),
        ({"project.yml": MOVED, "python/other.py": UDF}, []),
        ({"python/texts.py": UDF.replace('"int"', '"bigint"')}, ["totals"]),
        ({"python/texts.py": UDF.replace("udf", "pandas_udf")}, ["totals"]),
        ({"models/made.py": FILES["models/made.py"].replace("import doubled", "import doubled as twice")}, ["made"]),
    ],
)
def test_the_queries_that_reach_changed_code_ask(tmp_path: Path, edits: dict[str, str], asked: list[str]) -> None:
    """A change counts for the queries that reach it by imports, however far away it is, and for no others."""
    assert verdicts(tmp_path, edits) == {**NONE, **dict.fromkeys(asked, "ask")}


@pytest.mark.parametrize(
    "edits",
    [
        {"python/texts.py": '"""What the module is for."""\n\n' + UDF.replace("    return", "    # why\n    return")},
        {"python/texts.py": UDF.replace("    return doubled", '    "What it does."\n    return    doubled')},
        {"python/texts.py": UDF.replace("doubled(value) + 1", "(\n        doubled(value) + 1\n    )")},
        {"python/deep/low.py": "# the factor\nFACTOR    = 0x2\n"},
        {"models/made.py": "# a comment\n" + FILES["models/made.py"].replace("spark):", 'spark):\n    """Count."""')},
    ],
)
def test_comments_docstrings_and_layout_do_not_count(tmp_path: Path, edits: dict[str, str]) -> None:
    """An edit that Python does not run changes nothing."""
    assert verdicts(tmp_path, edits) == NONE


@pytest.mark.parametrize(
    "helper",
    [
        "import deep.low as low\n\n\ndef doubled(value):\n    return value * low.FACTOR\n",
        "from deep import low\n\n\ndef doubled(value):\n    return value * low.FACTOR\n",
        "from deep.low import *\n\n\ndef doubled(value):\n    return value * FACTOR\n",
        "def doubled(value):\n    from deep.low import FACTOR\n\n    return value * FACTOR\n",
        "import importlib\n\n\ndef doubled(value):\n    return value * importlib.import_module('deep.low').FACTOR\n",
        "try:\n    from deep.low import FACTOR\nexcept ImportError:\n    FACTOR = 1\n\n\ndef doubled(value):\n    return FACTOR\n",
    ],
)
def test_every_form_of_an_import_is_followed(tmp_path: Path, helper: str) -> None:
    """Imports within functions, of modules and of names, with stars and by literal names lead to the changed module."""
    assert verdicts(tmp_path, OTHER_FACTOR, {"python/helpers.py": helper}) == BOTH
    assert verdicts(tmp_path, {"python/unread.py": "NOTHING = 2\n"}, {"python/helpers.py": helper}) == NONE


def test_relative_imports_are_followed(tmp_path: Path) -> None:
    """Imports with dots count from the package of the module."""
    before = {
        "python/deep/__init__.py": "from .mid import FACTOR\n",
        "python/deep/mid.py": "from . import low\n\nFACTOR = low.FACTOR\n",
        "python/helpers.py": "import deep\n\n\ndef doubled(value):\n    return value * deep.FACTOR\n",
    }
    assert verdicts(tmp_path, OTHER_FACTOR, before) == BOTH


def test_modules_that_swap_their_texts_count(tmp_path: Path) -> None:
    """The same texts under other names are other code."""
    before = {
        "python/a.py": "FACTOR = 1\n",
        "python/b.py": "FACTOR = 2\n",
        "python/helpers.py": "import a, b\n\n\ndef doubled(value):\n    return value * a.FACTOR - b.FACTOR\n",
    }
    assert verdicts(tmp_path, {"python/a.py": "FACTOR = 2\n", "python/b.py": "FACTOR = 1\n"}, before) == BOTH


@pytest.mark.parametrize(
    "helper",
    [
        "import importlib\n\n\ndef doubled(value):\n    return importlib.import_module('un' + 'read').NOTHING * value\n",
        "def doubled(value):\n    return __import__('un' + 'read').NOTHING\n",
        "from importlib import import_module as get\n\n\ndef doubled(value):\n    return get('un' + 'read').NOTHING\n",
        "from importlib import import_module\n\n\ndef doubled(value):\n    return import_module('un' + 'read').NOTHING\n",
        "def doubled(value):\n    return eval('value * 2')\n",
        "import sys\n\nsys.path.append('elsewhere')\n\n\ndef doubled(value):\n    return value\n",
        "run = exec\n\n\ndef doubled(value):\n    return value\n",
        "import builtins\n\nrun = getattr(builtins, 'ex' + 'ec')\n\n\ndef doubled(value):\n    return value\n",
        "from pydoc import locate\n\n\ndef doubled(value):\n    return locate('unread.NOTHING')\n",
        "from werkzeug.utils import import_string as get\n\n\ndef doubled(value):\n    return get('unread').NOTHING\n",
    ],
)
def test_what_cannot_be_followed_makes_all_of_python_count(tmp_path: Path, helper: str) -> None:
    """Code that imports a computed name may run any module, and with any other change of the query nobody can tell."""
    before = {"python/helpers.py": helper}
    assert verdicts(tmp_path, {"python/unread.py": "NOTHING = 2\n"}, before) == BOTH

    view = {"models/totals.sql": FILES["models/totals.sql"].replace("as total", "as sum_of_scores")}
    assert verdicts(tmp_path, view, before) == {**NONE, "totals": "ask"}
    assert verdicts(tmp_path, view) == {**NONE, "totals": "resume"}
    assert verdicts(tmp_path, {}, before) == NONE


@pytest.mark.parametrize(
    ("helper", "file"),
    [
        ("RATES = open('data/rates.csv').read()\n", "data/rates.csv"),
        ("import os\n\nRATES = open(os.path.join('data', 'rates.csv')).read()\n", "data/rates.csv"),
        (
            "from pathlib import Path\n\nRATES = (Path(__file__).parent / 'rates.json').read_text()\n",
            "python/rates.json",
        ),
        ("from pathlib import Path\n\nRATES = open(Path('data') / 'rates.csv').read()\n", "data/rates.csv"),
        (
            "from pathlib import Path\n\nHERE = Path()\nRATES = open(HERE / 'data' / 'rates.csv').read()\n",
            "data/rates.csv",
        ),
        ("import pkgutil\n\nRATES = pkgutil.get_data('helpers', 'rates' + '.json')\n", "python/rates.json"),
        ("import somewhere\n\nRATES = somewhere.read('data/rates.csv')\n", "data/rates.csv"),
        ("import pandas as pd\n\nRATES = pd.read_csv('data/rates.csv')\n", "data/rates.csv"),
        ("import joblib\n\nRATES = joblib.load('python/rates' + '.json')\n", "python/rates.json"),
    ],
)
def test_files_of_the_project_that_code_reads_count(tmp_path: Path, helper: str, file: str) -> None:
    """A file that a literal names, or that code with computed paths may read, is a part of the code."""
    before = {"python/helpers.py": f"{helper}\n\ndef doubled(value):\n    return value * len(RATES)\n"}
    assert verdicts(tmp_path, {file: "changed"}, before) == BOTH
    assert verdicts(tmp_path, {"data/other.csv": "changed"}, before) == NONE


@pytest.mark.parametrize(
    "helper",
    [
        "import json, os\n\nNAME = 'rates'\nRATES = json.load(open(os.path.join('look', NAME + '.csv')))\n",
        "import os\n\nRATES = [open('look/' + name).read() for name in os.listdir('look')]\n",
        "from pathlib import Path\n\nRATES = [each.read_text() for each in Path('look').glob('*.csv')]\n",
        "from glob import glob\n\nRATES = [open(each).read() for each in glob('look/**/*.csv')]\n",
        "name = 'rates'\nRATES = open(f'look/{name}.csv').read()\n",
        "name = 'tes'\nRATES = open(f'look/ra{name}.csv').read()\n",
        "name = 'rates'\nRATES = open('look/%s.csv' % name).read()\n",
        "RATES = open('look/{}.csv'.format('rates'[:5])).read()\n",
        "START = 'look/ra'\nRATES = open(START + 'tes' + '.csv').read()\n",
        "from pathlib import Path\n\nFOLDER = Path(__file__).parent.parent / 'look'\nRATES = open(FOLDER / ('rates' + '.csv')).read()\n",
        "RATES = open('../look/' + str(1)).read()\n",
        "import somewhere\n\nRATES = somewhere.read_all('./look/')\n",
        "import pyarrow.dataset as files\n\nRATES = files.dataset('look')\n",
    ],
)
def test_files_of_folders_that_code_names_count(tmp_path: Path, helper: str) -> None:
    """A literal that is a folder, or the start of a path, counts with the files that code can find there."""
    before = {
        "python/helpers.py": f"{helper}\n\ndef doubled(value):\n    return value * len(RATES)\n",
        "look/rates.csv": "a",
    }
    assert verdicts(tmp_path, {"look/rates.csv": "changed"}, before) == BOTH
    assert verdicts(tmp_path, {"look/rates_new.csv": "b", "data/other.csv": "b"}, before) == BOTH
    assert verdicts(tmp_path, {"look.csv": "b", "looks/rates.csv": "b", "data/other.csv": "c"}, before) == NONE


def test_files_beside_the_project_count_by_the_start_of_their_names(tmp_path: Path) -> None:
    """Code that computes a name can read a file of the project's own folder; other texts are no names."""
    helper = "name = 'x'\nRATES = open(f'rates_{name}.csv').read()\n\n\ndef doubled(value):\n    return f'pro{value}'\n"
    before = {"python/helpers.py": helper, "rates_x.csv": "a", "other.csv": "a"}
    assert verdicts(tmp_path, {"rates_x.csv": "b"}, before) == BOTH
    assert verdicts(tmp_path, {"other.csv": "b", "project.yml": FILES["project.yml"] + "# c\n"}, before) == NONE
    before["python/helpers.py"] = "def doubled(value):\n    return f'rates_{value}'\n"
    assert verdicts(tmp_path, {"rates_x.csv": "c"}, before) == NONE


def test_data_and_own_files_do_not_count_as_files_of_code(tmp_path: Path) -> None:
    """A new file of a source's folder, of the storage, or of sqlstream's own folders is no change of code."""
    names = ("in", "in/", "./in", ".", "/", "s", "s/", "..", "../", "target", "logs/", "python/..", ".git", "models", "tests/")  # fmt: skip
    code = "\n".join(
        f"    os.path.join({name!r}, f'{name}/{{value}}') + {name!r} + open(value)" for name in ["", *names]
    )
    before = {"python/helpers.py": f"import os\n\n\ndef doubled(value):\n{code}\n"}
    places = (
        "in/1.json in/day=1/2 s/out/1.csv s/queries/totals/x target/x logs/x .git/x models/x.yml tests/x.yml notes.txt"
    )
    assert verdicts(tmp_path, dict.fromkeys(places.split(), ""), before) == NONE


def test_a_folder_counts_without_the_data_in_it(tmp_path: Path) -> None:
    """Folders of sources, of patterns and files of sources within a folder that code names are data."""
    sources = (
        FILES["sources.yml"].replace("path: in,", "path: 'data/in/*/x',")
        + "      - {name: zones, format: csv, mode: batch, path: data/zones.csv, schema: 'k string'}\n"
    )
    helper = "import os\n\n\ndef doubled(value):\n    return open(os.path.join('data', value))\n"
    before = {"sources.yml": sources, "python/helpers.py": helper, "data/in/1/x": "{}", "data/zones.csv": "a"}
    assert verdicts(tmp_path, {"data/in/1/x": "", "data/in/2/x": "", "data/zones.csv": "b"}, before) == NONE
    assert verdicts(tmp_path, {"data/new.csv": "b"}, before) == BOTH


def test_of_large_folders_sizes_and_times_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content of the first files is compared; a file behind them changes with its size."""
    monkeypatch.setattr(python_code, "COMPARED_FILES", 1)
    helper = "import os\n\n\ndef doubled(value):\n    return open(os.path.join('look', value))\n"
    before = {"python/helpers.py": helper, "look/a": "a", "look/b": "b"}
    assert verdicts(tmp_path, {"look/b": "longer"}, before) == BOTH
    assert verdicts(tmp_path, {"look/a": "c"}, before) == BOTH


def test_a_module_beside_python_counts(tmp_path: Path) -> None:
    """Python can find a module in the working directory, so its text counts, too."""
    before = {
        "beside.py": "FACTOR = 1\n",
        "python/helpers.py": "import beside\n\n\ndef doubled(value):\n    return value\n",
    }
    assert verdicts(tmp_path, {"beside.py": "FACTOR = 2\n"}, before) == BOTH


def test_what_a_run_writes_is_no_code(tmp_path: Path) -> None:
    """The storage of the target has files with any name, which change with each run."""
    before = {"python/helpers.py": "def doubled(value):\n    return open('0' + '1') or 'metadata' or 'rows.json'\n"}
    written = {"s/queries/totals/v1/checkpoint/metadata": "1", "s/out/rows.json": "{}", "target/rows.json": "{}"}
    assert verdicts(tmp_path, written, before) == NONE


def test_docstrings_count_where_code_reads_them(tmp_path: Path) -> None:
    """A function that uses the docstring of another one changes with it."""
    text = "def helped():\n    '''{}'''\n\n\nRATE = len(helped.__doc__)\n\n\ndef doubled(value):\n    return RATE\n"
    before, after = ({"python/helpers.py": text.format(docs)} for docs in ("a text", "a longer text"))
    assert verdicts(tmp_path, after, before) == BOTH


def test_the_code_of_a_sink_and_versions_of_packages_are_notes(tmp_path: Path) -> None:
    """Neither is in the state: rows from now on are written, or computed, with them."""
    old = identity(tmp_path, "totals")
    new = identity(tmp_path, "totals", {"python/sends.py": "def send(rows, batch):\n    rows.count()\n"})
    assert verdict(old, new) == "resume"
    assert ["sink `out`" in change.text for change in describe_changes(old, new)] == [True]

    before = {"python/helpers.py": "import click\n\n\ndef doubled(value):\n    return value\n"}
    old = identity(tmp_path, "totals", before)
    assert list(old.packages) == ["click"]
    assert verdict(old, replace(old, packages={"click": "0.1"})) == "resume"


def test_another_class_of_a_source_asks_even_without_state(tmp_path: Path) -> None:
    """The checkpoint has offsets of the first class."""
    old = replace(identity(tmp_path, "ticked"), stateful=False)
    assert verdict(old, replace(identity(tmp_path, "ticked", OTHER_CLASS), stateful=False)) == "ask"
    assert verdict(old, replace(identity(tmp_path, "ticked", OTHER_CODE), stateful=False)) == "resume"


def test_a_ledger_of_an_earlier_sqlstream_is_compared_as_it_was(tmp_path: Path) -> None:
    """Without digests of imports, an unchanged project is unchanged, and an edit of the module itself asks."""
    for model in MODELS:
        old = replace(identity(tmp_path, model), code=None, packages={}, unfollowed=())
        old = read_ledger(ledger_of(old).to_json()).identity
        assert old.code is None
        assert verdict(old, identity(tmp_path, model)) == "unchanged"
    old = replace(identity(tmp_path, "totals"), code=None)
    assert verdict(old, identity(tmp_path, "totals", {"python/texts.py": UDF.replace("+ 1", "+ 2")})) == "ask"


def test_a_long_expression_is_no_problem(tmp_path: Path) -> None:
    """The depth of a syntax tree and the length of a number do not limit the comparison."""
    source = "TOTAL = " + " + ".join(["1"] * 600) + f"\nHUGE = {hex(1 << 20_000)}\n"
    ast.parse(source)
    before, after = ({"python/deep/low.py": f"{source}FACTOR = {factor}\n"} for factor in (2, 3))
    assert verdicts(tmp_path, after, before) == BOTH


def test_versions_of_the_packages_of_a_target_are_notes(tmp_path: Path) -> None:
    """Jars can have functions of SQL, so `plan` reports another version, and the query resumes."""
    target = "name: shop\ntargets: {local: {master: local, storage: s, packages: ['org.shop:udfs:VERSION'], spark: {spark.jars: 'f-VERSION.jar'}}}\n"
    totals = {"models/totals.sql": FILES["models/totals.sql"].replace("scored(v)", "v")}
    old, new = (
        identity(tmp_path, "totals", {**totals, "project.yml": target.replace("VERSION", each)})
        for each in ("1.0", "1.1")
    )

    found = describe_changes(old, new)

    assert [change.text for change in found if change.is_note] == [
        "the package spark.jars changed from f-1.0.jar to f-1.1.jar",
        "the package org.shop:udfs changed from 1.0 to 1.1",
    ]
    assert len(found) == 2
