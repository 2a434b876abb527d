"""After any edit between two commands, the cache gives the same result as compiling from scratch."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sqlstream.app.request import ProjectRequest
from tests.support.compiling import FILES, outcome, write_files

ROOT = Path(__file__).parents[4]
EXAMPLES = ("models", "macros", "seeds", "project.yml", "sources.yml", "sinks.yml")

STEPS, EXAMPLE_STEPS = 20, 15
"""Edits in one test run of the small project, and of the worked examples."""

GO_BACK = 0.7
"""The probability that an edit that does not compile is undone before the next one."""

ITEMS = (
    "1 as one",
    "{{ cents('price') }} as c2",
    "{{ least() }} as c3",
    "{{ var('least') }} as c4",
    "{{ var('unset', 7) }} as c5",
    "'{{ env_var('REGION', 'none') }}' as c6",
    "'{{ env_var('HOME_TOWN') }}' as c7",
    "'{{ target.name }}' as c8",
    "'{{ model.description }}' as c9",
    "'{{ config.get('trigger', 'none') }}' as c10",
    "{{ 1 if extra is defined else 2 }} as c11",
    "{{ extra() if extra is defined else 2 }} as c12",
    "'{{ invocation_id[:0] }}' as c13",
    "{{ next_number() if next_number is defined else 0 }} as c14",
    "{{ log('a message ' ~ var('least'), info=True) }} 5 as c15",
    "{{ exceptions.warn('look ' ~ var('least')) }} 6 as c16",
    "no_such_column as c17",
    "{{ cents() }} as c18",
    "{{ undefined_thing }} as c19",
    "(select max(price) from m1) as c20",
    "row_number() over (order by at) as c21",
    "sum(1) as c22",
    "/* + BROADCAST(m) */ 1 as c23",
    "'unclosed as c24",
    "{{ some_macro() }} as c25",
    "{{ limit() if limit is defined else 1 }} as c26",
)

MACROS = (
    "{% macro cents(c) %}cast({{ c }} * 100 as bigint){% endmacro %}\n",
    "\n\n{% macro cents(c) %}cast({{ c }} * 100 as bigint){% endmacro %}\n",
    "{% macro cents(c) %}cast({{ c }} * {{ var('least') }} as bigint){% endmacro %}\n",
    "{% macro cents(c) %}no_such_function({{ c }}){% endmacro %}\n",
    "{% macro cents(c) %}{{ c }}{% endmacro %}{% macro extra() %}{{ target.name | length }}{% endmacro %}\n",
    "{% macro extra() %}{{ cents('2') }}{% endmacro %}{% macro cents(c) %}({{ c }}){% endmacro %}\n",
    "{% set kept = namespace(n=0) %}{% macro next_number() %}{% set kept.n = kept.n + 1 %}{{ kept.n }}{% endmacro %}\n",
    "{% set most = var('least') %}{% macro limit() %}{{ most }}{% endmacro %}{% macro cents(c) %}{{ c }}{% endmacro %}\n",
    "{% macro cents(c) %}{{ c }\n",
)

PROPERTIES = (
    "",
    "version: 2\nmodels:\n  - {name: m2, description: The second}\n",
    "version: 2\nmodels:\n  - {name: m2, description: It is, columns: [{name: at, description: When}]}\n",
    "version: 2\nmodels:\n  - {name: m2, config: {trigger: 7 seconds}}\n",
    "version: 2\nmodels:\n  - {name: m4, config: {trigger: 5 seconds, output_mode: update}}\n",
    "version: 2\nmodels:\n  - {name: m5, config: {tags: [x], partition_by: [cents]}}\n",
    "version: 2\nmodels:\n  - {name: m3, config: {enabled: false}}\n",
    "version: 2\nmodels:\n  - {name: m1, config: {sink: files, meta: {a: 1}}}\n",
    "version: 2\nmodels:\n  - {name: m1, config: {no_such_key: files}}\n",
)

SOURCE_EDITS = (
    ("data_type: double", "data_type: string"),
    ("{name: price, data_type: double}", "{name: cost, data_type: double}"),
    ("path: users, mode: batch", "path: users, mode: stream"),
    ("user_id string, country string", "user_id string, country string, at timestamp"),
    ("        format: json\n", "        format: json\n        watermark: {column: at, delay: 5 minutes}\n"),
    ("        format: json\n", "        format: json\n        options: {latestFirst: true}\n"),
    ("version: 2\n", "# a line more\nversion: 2\n"),
    ("name: clicks", "name: klicks"),
)


@dataclass
class World:
    """A project folder and the options and environment of a command."""

    root: Path
    dice: random.Random
    request: ProjectRequest
    number: int = 0
    good: dict[str, str] = field(default_factory=dict)

    def write(self, path: str, text: str) -> None:
        """Writes a file."""
        write_files(self.root, {path: text})

    def keep(self) -> None:
        """Saves the current files as the last good state."""
        paths = [path for path in self.root.rglob("*.*") if path.is_file() and path.suffix in (".sql", ".yml", ".csv")]
        relative = [path for path in paths if path.relative_to(self.root).parts[0] != "target"]
        self.good = {str(path.relative_to(self.root)): path.read_text() for path in relative}

    def go_back(self) -> None:
        """Restores the last good state of the files."""
        for folder in ("models", "macros"):
            for path in (self.root / folder).rglob("*.*"):
                path.unlink()
        for name, text in self.good.items():
            self.write(name, text)

    def models(self) -> list[Path]:
        """Returns all models."""
        return sorted((self.root / "models").rglob("*.sql"))


def edit_model(world: World) -> None:
    """Adds an item to a select list."""
    path = world.dice.choice(world.models())
    item = world.dice.choice(ITEMS)
    path.write_text(path.read_text().replace(" from ", f", {item} from ", 1))


def move_lines(world: World) -> None:
    """Moves every line of a model down by adding a comment."""
    path = world.dice.choice(world.models())
    path.write_text("-- one more\n" + path.read_text())


def restore(world: World) -> None:
    """Restores the original text of a file."""
    path = world.dice.choice(list(FILES))
    world.write(path, FILES[path])


def add_model(world: World) -> None:
    """Adds a model over another one."""
    world.number += 1
    read = world.dice.choice(world.models()).stem
    sink = world.dice.choice(["", "{{ config(sink='files') }}", "{{ config(sink='files', output_mode='complete') }}"])
    world.write(f"models/n{world.number}.sql", f"{sink}select *, 1 as x from {{{{ ref('{read}') }}}}\n")


def delete_model(world: World) -> None:
    """Deletes a model."""
    if len(world.models()) > 3:
        world.dice.choice(world.models()).unlink()


def rename_model(world: World) -> None:
    """Renames a model."""
    path = world.dice.choice(world.models())
    path.rename(path.with_name(f"r{path.name}"[-12:]))


def edit_macros(world: World) -> None:
    """Replaces the macros in a file."""
    world.write(world.dice.choice(["macros/money.sql", "macros/other.sql"]), world.dice.choice(MACROS))


def edit_properties(world: World) -> None:
    """Changes the properties of the models."""
    world.write("models/models.yml", world.dice.choice(PROPERTIES))


def edit_sources(world: World) -> None:
    """Changes the declarations of the sources."""
    old, new = world.dice.choice(SOURCE_EDITS)
    path = world.root / "sources.yml"
    path.write_text(path.read_text().replace(old, new, 1))


def edit_seed(world: World) -> None:
    """Changes the columns of the seed."""
    world.write(
        "seeds/countries.csv", world.dice.choice(["country,name\nat,A\n", "country,label\nat,A\n", "country\nat\n"])
    )


def edit_surroundings(world: World) -> None:
    """Changes a variable, the environment or the target."""
    kind = world.dice.choice(["var", "env", "target"])
    if kind == "var":
        value = world.dice.choice([3, "3", 3.0, True, [1, 2], None])
        world.request = replace(world.request, variables=world.dice.choice([{}, {"least": value}, {"unset": value}]))
    elif kind == "env":
        env = world.dice.choice([{}, {"REGION": "eu"}, {"REGION": "us"}, {"REGION": "eu", "HOME_TOWN": "here"}])
        world.request = replace(world.request, env=env)
    else:
        world.request = replace(world.request, target=world.dice.choice([None, "local", "other"]))


def edit_project(world: World) -> None:
    """Changes project.yml."""
    old, new = world.dice.choice(
        [("least: 3", "least: 5"), ("+tags: [late]", "+tags: [later]"), ("vars:", "# more\nvars:")]
    )
    path = world.root / "project.yml"
    path.write_text(path.read_text().replace(old, new, 1))


EDITS: tuple[Callable[[World], None], ...] = (
    edit_model,
    edit_model,
    move_lines,
    restore,
    restore,
    restore,
    add_model,
    delete_model,
    rename_model,
    edit_macros,
    edit_properties,
    edit_properties,
    edit_sources,
    edit_seed,
    edit_surroundings,
    edit_surroundings,
    edit_surroundings,
    edit_project,
)


def files_of(world: World, *endings: str) -> list[Path]:
    """Returns the files of the worked examples with one of `endings`."""
    found = [path for path in world.root.rglob("*") if path.suffix in endings and path.is_file()]
    return sorted(path for path in found if "target" not in path.relative_to(world.root).parts)


def edit_words(world: World) -> None:
    """Replaces a word of a file by another word of the project, as a renamed column, table, key or function is."""
    path, other = (world.dice.choice(files_of(world, ".sql", ".yml")) for _ in range(2))
    words = [list(re.finditer(r"[A-Za-z_]{3,}", each.read_text())) for each in (path, other)]
    if all(words):
        old, new = map(world.dice.choice, words)
        path.write_text(path.read_text()[: old.start()] + new[0] + path.read_text()[old.end() :])


def edit_numbers(world: World) -> None:
    """Changes a number: of a delay, a window, a type, an option."""
    path = world.dice.choice(files_of(world, ".sql", ".yml"))
    numbers = list(re.finditer(r"\d+", path.read_text()))
    if numbers:
        found = world.dice.choice(numbers)
        text = path.read_text()
        path.write_text(f"{text[: found.start()]}{int(found[0]) + 1}{text[found.end() :]}")


def drop_line(world: World) -> None:
    """Removes a line of a file."""
    path = world.dice.choice(files_of(world, ".sql", ".yml", ".csv"))
    lines = path.read_text().splitlines(keepends=True)
    del lines[world.dice.randrange(len(lines))]
    path.write_text("".join(lines))


def add_comment(world: World) -> None:
    """Moves the lines of a file down."""
    path = world.dice.choice(files_of(world, ".sql", ".yml"))
    path.write_text(("-- moved\n" if path.suffix == ".sql" else "# moved\n") + path.read_text())


def copy_model(world: World) -> None:
    """Copies a model, which then reads what the first one reads, and writes where it writes."""
    path = world.dice.choice(world.models())
    shutil.copy(path, path.with_name(f"{path.stem}_{len(world.models())}.sql"))


def change_command(world: World) -> None:
    """Changes an option, the environment, or the installed Spark."""
    secret = world.dice.choice([{}, {"SQLSTREAM_SECRET_DATABASE": "canary"}])
    variables: dict[str, object] = world.dice.choice([{}, {"wordcount_port": 1}, {"devices_path": "elsewhere"}])
    target, spark = world.dice.choice(["local", "postgres", "mariadb"]), world.dice.choice(["4.1.0", "4.3.0", "5.0.0"])
    world.request = replace(world.request, target=target, variables=variables, env=secret, spark_version=lambda: spark)


EXAMPLE_EDITS = (
    *(edit_words, edit_words, edit_words, edit_numbers, edit_numbers, edit_numbers),
    *(drop_line, add_comment, add_comment, copy_model, delete_model, change_command, change_command),
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_cache_changes_nothing_about_the_examples(tmp_path: Path, seed: int) -> None:
    """After each of many random edits of the worked examples, everything is the same as without a cache."""
    for name in EXAMPLES:
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    world = World(tmp_path, random.Random(seed), ProjectRequest(tmp_path, env={}, starts_java=False))
    good = {path: path.read_bytes() for path in files_of(world, ".sql", ".yml", ".csv", ".py")}
    done: list[str] = []
    for _ in range(EXAMPLE_STEPS):
        expected = outcome(world.request, partial=False)
        assert outcome(world.request, partial=True) == expected, done
        if "manifest" in expected:
            good = {path: path.read_bytes() for path in files_of(world, ".sql", ".yml", ".csv", ".py")}
        else:  # most edits must be of a project that compiles
            for path in files_of(world, ".sql", ".yml", ".csv"):
                path.unlink()
            for path, content in good.items():
                path.write_bytes(content)
            assert outcome(world.request, partial=True) == outcome(world.request, partial=False), done
        edit = world.dice.choice(EXAMPLE_EDITS)
        done.append(edit.__name__)
        edit(world)


@pytest.mark.parametrize("seed", range(3))
def test_the_cache_changes_nothing(tmp_path: Path, seed: int) -> None:
    """After each edit findings, their places, artifacts and logged messages are the same as without a cache."""
    world = World(tmp_path, random.Random(seed), ProjectRequest(tmp_path, env={}))
    write_files(tmp_path, FILES)
    done: list[str] = []
    for _ in range(STEPS):
        expected = outcome(world.request, partial=False)
        for _ in range(2):
            assert outcome(world.request, partial=True) == expected, done
        if "manifest" in expected:
            world.keep()
        elif world.dice.random() < GO_BACK:
            world.go_back()
        edit = world.dice.choice(EDITS)
        done.append(edit.__name__)
        edit(world)
