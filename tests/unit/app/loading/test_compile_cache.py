"""The cache of the compiler: what it reuses, what invalidates it, and which damage it survives."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstream.app.loading.compile_cache import CACHE_FILE
from sqlstream.app.request import ProjectRequest
from tests.support.compiling import FILES, outcome, write_files

ROOT = Path(__file__).parents[4]
SCRIPT = """
import sys
from pathlib import Path
from sqlstream.app.compile.compile import compile_models
from sqlstream.app.request import ProjectRequest
compile_models(ProjectRequest(Path(sys.argv[1]), env={}))
print(*sorted({"jinja2", "sqlglot"} & sys.modules.keys()))
"""


@pytest.fixture
def request_(tmp_path: Path) -> ProjectRequest:
    """A project that has been compiled once."""
    write_files(tmp_path, {**FILES, "sources.yml": FILES["sources.yml"].replace("{{ var('path') }}", "in")})
    request = ProjectRequest(tmp_path, env={})
    outcome(request, partial=True)
    return request


def entries(request: ProjectRequest) -> dict[str, str]:
    """Returns the entries of the cache by name: paths of models, and one for the macros."""
    with closing(sqlite3.connect(request.folder / "target" / CACHE_FILE)) as connection:
        return dict(connection.execute("SELECT name, text FROM entries").fetchall())


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """Returns the names of the models with new or changed entries."""
    return {Path(name).stem for name, text in after.items() if before.get(name) != text}


def in_process(folder: Path) -> subprocess.Popen[str]:
    """Starts a separate process that compiles a project and prints the libraries that it loaded."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_an_unchanged_project_is_not_rendered_or_parsed(request_: ProjectRequest) -> None:
    """Compiling an unchanged project loads neither Jinja nor sqlglot."""
    output, errors = in_process(request_.folder).communicate()
    assert (output.strip(), errors) == ("", "")


def test_a_changed_model_and_its_readers_are_compiled_again(request_: ProjectRequest) -> None:
    """After a change the changed model and all its downstream models are compiled again, and nothing else."""
    before = entries(request_)
    path = request_.folder / "models" / "m3.sql"
    path.write_text(path.read_text().replace("u.country", "u.country, 1 as one"))
    outcome(request_, partial=True)
    assert changed(before, entries(request_)) == {"m3", "m4", "m5"}


def test_a_changed_comment_stays_in_its_model(request_: ProjectRequest) -> None:
    """A changed comment in a template is no change of the SQL that downstream models read."""
    before = entries(request_)
    path = request_.folder / "models" / "m1.sql"
    path.write_text("{# said twice #}" + path.read_text())
    outcome(request_, partial=True)
    assert changed(before, entries(request_)) == {"m1"}


def test_words_about_a_source_and_its_lines_change_nothing(request_: ProjectRequest) -> None:
    """A description of a source, which also moves its lines, changes no entry."""
    before = entries(request_)
    path = request_.folder / "sources.yml"
    path.write_text(path.read_text().replace("- name: clicks\n", "- name: clicks\n        description: said\n"))
    outcome(request_, partial=True)
    assert entries(request_) == before


def test_deleted_models_leave_the_cache(request_: ProjectRequest) -> None:
    """A deleted model has no entry."""
    (request_.folder / "models" / "late" / "m5.sql").unlink()
    outcome(request_, partial=True)
    assert "models/late/m5.sql" not in entries(request_)


def test_another_target_compiles_only_terminal_models_again(request_: ProjectRequest) -> None:
    """What a target sets decides the findings of queries; the SQL of a view stays."""
    before = entries(request_)
    path = request_.folder / "project.yml"
    path.write_text(
        path.read_text().replace("storage: data", "storage: data, spark: {spark.sql.shuffle.partitions: 3}", 1)
    )
    outcome(request_, partial=True)
    assert changed(before, entries(request_)) == {"m4", "m5"}


def text_of(name: str, old: str, new: str) -> Callable[[ProjectRequest], ProjectRequest]:
    """Returns a file with one replacement."""

    def edit(request: ProjectRequest) -> ProjectRequest:
        path = request.folder / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        return request

    return edit


def file(name: str, text: str) -> Callable[[ProjectRequest], ProjectRequest]:
    """Returns a new file."""

    def edit(request: ProjectRequest) -> ProjectRequest:
        write_files(request.folder, {name: text})
        return request

    return edit


EDITS: dict[str, Callable[[ProjectRequest], ProjectRequest]] = {
    "a macro": text_of("macros/money.sql", "100", "1000"),
    "a macro that a macro calls": text_of("macros/money.sql", "bigint", "string"),
    "a variable": lambda request: replace(request, variables={"least": 8}),
    "a variable of another type": lambda request: replace(request, variables={"least": "3"}),
    "a variable of the target": lambda request: replace(request, target="other"),
    "an environment variable": lambda request: replace(request, env={"REGION": "eu"}),
    "the target": text_of("project.yml", "  other:", "  next: {master: 'local[*]', storage: data}\n  other:"),
    "a description": file("models/m.yml", "version: 2\nmodels:\n  - {name: m2, description: said}\n"),
    "a configuration that a template reads": file(
        "models/m.yml", "version: 2\nmodels:\n  - {name: m2, config: {trigger: 9 seconds}}\n"
    ),
    "an output mode": file("models/m.yml", "version: 2\nmodels:\n  - {name: m4, config: {output_mode: complete}}\n"),
    "a sink": text_of("sinks.yml", "{{ model.name }}", "all/{{ model.name }}"),
    "the mode of a source": text_of("sources.yml", "mode: batch", "mode: stream"),
    "a type of a source": text_of("sources.yml", "data_type: double", "data_type: int"),
    "a watermark of a source": text_of(
        "sources.yml", "- name: clicks\n", "- name: clicks\n        watermark: {column: at, delay: 1 hour}\n"
    ),
    "the columns of a seed": text_of("seeds/countries.csv", "country,name", "country,label"),
    "a name that was free": file("models/extra.sql", "select 1 as one"),
    "a macro that was not there": file("macros/n.sql", "{% macro extra() %}2{% endmacro %}"),
    "lines above a finding": text_of("models/late/m8.sql", "select", "\n\nselect"),
    "lines above a finding in a macro": text_of("macros/odd.sql", "{% macro", "\n{% macro"),
    "a variable that only a sink reads": lambda request: replace(request, variables={"folder": "there"}),
    "an environment variable that only a sink reads": lambda request: replace(request, env={"PREFIX": "x"}),
    "an output mode that Spark refuses": text_of(
        "models/late/m5.sql", "sink='files'", "sink='files', output_mode='complete'"
    ),
    "the folders of an output": text_of("models/own.yml", "sink: files", "sink: files, partition_by: [cents]"),
    "whether a stored output grows": file(
        "models/m.yml", "version: 2\nmodels:\n  - {name: kept, config: {output_mode: complete}}\n"
    ),
    "the type of a function in Python": text_of("python/own.py", '"int"', '"string"'),
    "packages, which can add functions": text_of("project.yml", ", packages: ['a:b:1']", ""),
    "a trigger": file("models/m.yml", "version: 2\nmodels:\n  - {name: m5, config: {trigger: real_time}}\n"),
    "a later Spark": lambda request: replace(request, spark_version=lambda: "9.0.0"),
    "the version of a source's column upstream": text_of(
        "models/m1.sql", "user_id, price", "user_id, price * 2 as price"
    ),
    "a key of deduplication": file(
        "models/m.yml", "version: 2\nmodels:\n  - {name: m3, config: {deduplicate: [user_id]}}\n"
    ),
    "a state that macros keep": file("models/m0.sql", "select {{ counted() }} as n"),
}

MORE = {
    "sinks.yml": FILES["sinks.yml"]
    + """  - {name: read, format: json, path: "{{ var('folder', 'here') }}/{{ env_var('PREFIX', '') }}{{ model.name }}"}\n""",
    "models/late/m9.sql": "{{ config(sink='read') }}select at, own(user_id) as one, of_a_package(at) as two from {{ ref('m1') }}\n",
    "models/late/kept.sql": "{{ config(sink='read', materialized='stored') }}"
    "select user_id, count(*) as n from {{ ref('m1') }} group by user_id, window(at, '1 hour')\n",
    "models/late/after.sql": "{{ config(sink='read') }}select k.user_id, k.n, l.n as m from {{ ref('kept') }} k"
    " join {{ ref('kept') }} l using (user_id)\n",
    "models/late/m10.sql": "select at, cents from {{ ref('m2') }}\n",
    "models/own.yml": "version: 2\nmodels:\n  - {name: m10, config: {sink: files}}\n",
    "python/own.py": 'from pyspark.sql.functions import udf\n\n\n@udf("int")\ndef own(x):\n    return 1\n',
    "project.yml": FILES["project.yml"].replace("storage: data}", "storage: data, packages: ['a:b:1']}", 1)
    + "functions: [own:own]\n",
    "macros/odd.sql": "{% macro odd() %}/* + BROADCAST(a) */{% endmacro %}\n",
    "macros/state.sql": "{% set kept = namespace(n=0) %}"
    "{% macro counted() %}{% set kept.n = kept.n + 1 %}{{ kept.n }}{% endmacro %}\n",
    "models/late/m8.sql": "select {{ odd() }} user_id from {{ source('web', 'users') }}\n",
    "models/late/m6.sql": "select {{ least() }} as l, '{{ var('least') is string }}' as s, {{ 1 if extra is defined else 3 }} as e,\n"
    " {{ counted() }} as n, '{{ target.name }}' as t from {{ source('web', 'users') }} a\n"
    " join {{ source('web', 'users') }} b using (user_id)\n",
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_changes_the_result(tmp_path: Path, name: str) -> None:
    """After an edit, the old cache gives the same new result as compiling without a cache."""
    write_files(tmp_path, {**FILES, **MORE})
    request = ProjectRequest(tmp_path, env={})
    before = outcome(request, partial=True)
    assert "manifest" in before
    request = EDITS[name](request)
    if name == "the target":
        request = replace(request, target="next")
    after = outcome(request, partial=True)
    assert after != before
    assert after == outcome(request, partial=False)


def flip(path: Path, dice: random.Random) -> None:
    """Flips one bit."""
    content = bytearray(path.read_bytes())
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


def cut(path: Path, dice: random.Random) -> None:
    """Truncates the file at a random position."""
    path.write_bytes(path.read_bytes()[: dice.randrange(path.stat().st_size)])


def scramble(path: Path, dice: random.Random) -> None:
    """Overwrites a stretch of the file."""
    content = bytearray(path.read_bytes())
    start = dice.randrange(len(content))
    content[start : start + 3000] = dice.randbytes(min(3000, len(content) - start))
    path.write_bytes(content)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("damage", [flip, cut, scramble])
def test_a_damaged_file_changes_nothing(
    request_: ProjectRequest, damage: Callable[[Path, random.Random], None], seed: int
) -> None:
    """With a damaged cache file the result is the same as without a cache, and the cache is rebuilt."""
    path, dice = request_.folder / "target" / CACHE_FILE, random.Random(seed)
    whole = entries(request_)
    expected = outcome(request_, partial=False)
    for _ in range(3):
        damage(path, dice)
        assert outcome(request_, partial=True) == expected
        assert outcome(request_, partial=True) == expected
        assert entries(request_) == whole


def of_another_program(path: Path) -> None:
    """Creates a database with an endless view."""
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x, x FROM n"
        connection.execute(f"CREATE VIEW entries(name, seal, text) AS {endless}")


def linked(path: Path) -> None:
    """Creates a link to a file outside the project."""
    outside = path.parents[1] / "outside.txt"
    outside.write_text("mine")
    path.unlink()
    path.symlink_to(outside)


@pytest.mark.parametrize(
    "replace_file",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("no database at all\n" * 100),
        lambda path: path.unlink(),
        of_another_program,
        linked,
    ],
)
def test_a_foreign_cache_file_is_replaced(request_: ProjectRequest, replace_file: Callable[[Path], object]) -> None:
    """A file of another program is not read, but replaced; a link is removed and its target stays."""
    path = request_.folder / "target" / CACHE_FILE
    expected, whole = outcome(request_, partial=False), entries(request_)
    replace_file(path)
    assert outcome(request_, partial=True) == expected
    assert entries(request_) == whole
    assert not path.is_symlink()
    outside = path.parents[1] / "outside.txt"
    assert not outside.exists() or outside.read_text() == "mine"


def test_a_folder_in_place_of_the_cache_stays(request_: ProjectRequest) -> None:
    """If a folder is in the way of the cache file, compiling works without a cache."""
    path = request_.folder / "target" / CACHE_FILE
    expected = outcome(request_, partial=False)
    path.unlink()
    path.mkdir()
    assert outcome(request_, partial=True) == expected
    assert path.is_dir()


def test_entries_of_other_versions_are_not_used(request_: ProjectRequest) -> None:
    """The seal of an entry contains all versions, so entries of other versions are ignored."""
    path = request_.folder / "target" / CACHE_FILE
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE entries SET seal = zeroblob(16), text = replace(text, 'from', 'FROM')")
        connection.commit()
    assert outcome(request_, partial=True) == outcome(request_, partial=False)


def test_a_locked_cache_is_not_used(request_: ProjectRequest) -> None:
    """While another command has locked the cache, compiling works without it."""
    expected = outcome(request_, partial=False)
    with closing(sqlite3.connect(request_.folder / "target" / CACHE_FILE, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert outcome(request_, partial=True) == expected


def test_parallel_commands_share_the_cache(request_: ProjectRequest) -> None:
    """Several commands that start at once without a cache all succeed and leave an intact file."""
    whole = entries(request_)
    (request_.folder / "target" / CACHE_FILE).unlink()
    ended = [process.communicate()[1] for process in [in_process(request_.folder) for _ in range(4)]]
    assert ended == [""] * 4
    assert entries(request_) == whole


def test_no_environment_value_is_cached(tmp_path: Path) -> None:
    """The cache contains no values of environment variables: neither secrets nor variables that a template reads."""
    sink = "version: 2\nsinks:\n  - {name: files, format: parquet, path: '{{ model.name }}', options: {key: \"%s\"}}\n"
    secret = "{{ env_var('SQLSTREAM_SECRET_KEY') }}"
    model = "{{ config(sink='files') }}select at{% if env_var('PLAIN') == 'x' %}, 1{% endif %} from {{ source('web', 'clicks') }}"
    write_files(tmp_path, {**FILES, "sinks.yml": sink % secret, "models/m7.sql": model})
    values = {"SQLSTREAM_SECRET_KEY": "canary-secret", "PLAIN": "canary-plain"}
    assert "manifest" in outcome(ProjectRequest(tmp_path, env=values), partial=True)
    content = (tmp_path / "target" / CACHE_FILE).read_bytes()
    assert b"canary" not in content
    assert b"SQLSTREAM_SECRET_KEY" in content
