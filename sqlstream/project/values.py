"""The project as frozen values: what the files of a project say, validated, each with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlstream.location import Location
from sqlstream.project.secrets import OptionValue

if TYPE_CHECKING:  # the readers of YAML and of files use the values of this module
    from sqlstream.project.files.python_files import PythonFunction, PythonModule
    from sqlstream.project.yaml import YamlNode


@dataclass(frozen=True)
class Located:
    """A value as YAML or config() gave it (str, int, float, bool, None, list, dict), and where."""

    value: object
    location: Location


ConfigPatch = Mapping[str, Located]
"""The configuration keys that one place (a folder in project.yml, a properties file, config()) sets."""


@dataclass(frozen=True)
class DeclaredColumn:
    """A declared column: `data_type` is Spark DDL, or None where only a description is given.

    `places` gives the location of `name` and `data_type` of a column of a model or seed.
    """

    name: str
    data_type: str | None
    description: str = ""
    places: Mapping[str, Location] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Schema:
    """A declared schema, as exactly one of Spark DDL text or the JSON of a Spark `StructType`."""

    location: Location
    ddl: str | None = None
    json: str | None = None


@dataclass(frozen=True)
class Watermark:
    """An event-time column and how late its rows may be (`delay` is a Spark interval such as `10 minutes`)."""

    column: str
    delay: str
    location: Location


@dataclass(frozen=True)
class Target:
    """Where Spark runs and where data and checkpoints live. `threads` is how many queries that end by themselves run
    at once, `max_streams` how many that do not may be started together.
    """

    name: str
    master: str
    storage: str
    spark: Mapping[str, OptionValue]
    packages: tuple[str, ...]
    location: Location
    remote: str | None = None
    threads: int = 4
    max_streams: int = 100

    @property
    def is_local(self) -> bool:
        """Whether all of Spark runs on this machine: `local`, `local[4]`, or the workers of `local-cluster[2,1,1024]`.

        Only of targets without `remote`.
        """
        return re.match(r"local($|\[|-cluster\[)", self.master) is not None


@dataclass(frozen=True)
class SourceTable:
    """One table of a source, a stream (`mode` "stream") or static (`mode` "batch").

    `places` gives the location of each key that the YAML sets (`format`, `path`, `schema`, `options`, `options.x`).
    `written` are the keys that say how it is read, as the files have them: Jinja unrendered, no target's overrides.
    `table` is the name in Spark's catalog of what the format `table` reads, `python` the `module:Class` of python/ that
    the format `python` is read by. `on_corrupt` is what becomes of records that cannot be read, as the YAML says it.
    `corrupt_of` is the table whose corrupt records this one holds, None for every table of the YAML. `mask` are the
    columns whose values no recorded test shows.
    """

    source: str
    name: str
    format: str
    path: str | None
    schema: Schema | None
    mode: str
    options: Mapping[str, OptionValue]
    watermark: Watermark | None
    columns: tuple[DeclaredColumn, ...]
    description: str
    tags: tuple[str, ...]
    meta: Mapping[str, object]
    location: Location
    places: Mapping[str, Location] = field(default_factory=dict)
    written: Mapping[str, object] = field(default_factory=dict)
    table: str | None = None
    python: str | None = None
    on_corrupt: str | None = None
    quarantine_sink: str | None = None
    corrupt_of: SourceTable | None = None
    mask: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """The name as messages show it: `aws.cloudtrail_logs`."""
        return f"{self.source}.{self.name}"


@dataclass(frozen=True)
class Sink:
    """A declared output. `path`, `table` and `options` may hold Jinja over `model`, so they are rendered per model
    later; `places`, `written` and `table` as in `SourceTable`. `python` is the `module:name` of python/ that the format
    `python` gives the rows to.
    """

    name: str
    format: str
    path: Located | None
    partition_by: tuple[str, ...]
    options: Mapping[str, Located]
    description: str
    tags: tuple[str, ...]
    meta: Mapping[str, object]
    location: Location
    places: Mapping[str, Location] = field(default_factory=dict)
    written: Mapping[str, object] = field(default_factory=dict)
    table: Located | None = None
    python: str | None = None


@dataclass(frozen=True)
class Seed:
    """A CSV file in seeds/; `columns` are those whose type the properties declare, `header` the names of all.

    `checksum` is that of the file's text; `written` is the configuration as the files have it, Jinja unrendered.
    """

    name: str
    path: str
    description: str
    columns: tuple[DeclaredColumn, ...]
    config: ConfigPatch
    location: Location
    properties_location: Location | None = None
    header: tuple[str, ...] = ()
    checksum: str = ""
    written: Mapping[str, object] = field(default_factory=dict)

    @property
    def delimiter(self) -> str:
        """The character between two values."""
        located = self.config.get("delimiter")
        return str(located.value) if located else ","


@dataclass(frozen=True)
class ModelFile:
    """A file under models/: its text, and what YAML says of it.

    `folders` are the folders below models/, outermost first. `configs` are the patches from YAML in ascending
    precedence: project.yml's folders from the outermost inwards, then the properties file. `written` is what they make
    together before their Jinja is rendered. `declared_at` is where YAML asks for a model that has no file of its own.
    """

    name: str
    path: str
    text: str
    folders: tuple[str, ...]
    description: str
    columns: tuple[DeclaredColumn, ...]
    configs: tuple[ConfigPatch, ...]
    properties_location: Location | None = None
    written: Mapping[str, object] = field(default_factory=dict)
    declared_at: Location | None = None

    @property
    def location(self) -> Location:
        """The file's first character, or where YAML asks for the model."""
        return self.declared_at or Location(self.path)

    @property
    def is_python(self) -> bool:
        """Whether the model is a Python function, and not a query."""
        return self.path.endswith(".py")


@dataclass(frozen=True)
class MacroFile:
    """A `.sql` file under macros/."""

    path: str
    text: str


TO_SQLSTREAM = "sqlstream:"
"""What a comment to sqlstream begins with."""


def may_allow(text: str) -> bool:
    """Whether a file may hold a comment to sqlstream, or one that was meant for it."""
    return TO_SQLSTREAM in text or "allow" in text.lower()


@dataclass(frozen=True)
class CommentedFile:
    """A YAML file that has a comment to sqlstream."""

    path: str
    text: str


@dataclass(frozen=True)
class Selector:
    """A named selection of selectors.yml; `is_default` says whether it holds where nothing else is selected.

    `definition` is the node that says what it takes; the compiler, which knows the criteria, reads it.
    """

    name: str
    description: str
    is_default: bool
    definition: YamlNode
    location: Location


@dataclass(frozen=True)
class WrittenTests:
    """The `unit_tests` of one YAML file, as it has them: nothing is rendered or judged before they are run."""

    node: YamlNode
    location: Location


@dataclass(frozen=True)
class Project:
    """A whole project, as its files say it. Tuples are in the order of their names (macros: of their paths).

    `vars` are the effective ones: project.yml's, then the target's, then the command line's. `written_vars` are
    project.yml's alone, their Jinja unrendered. `rules` are what findings are lowered to, by code: `warn`, `info`,
    `ignore` or `off`.
    `selectors` are in the order of the file. `python` are the modules below python/, `functions` what SQL may call of
    them. `tests` are the unit tests of the files of models/. `commented` are the YAML files with comments to sqlstream.
    """

    root: Path
    name: str
    version: str
    target: Target
    target_names: tuple[str, ...]
    vars: Mapping[str, object]
    sources: tuple[SourceTable, ...]
    sinks: tuple[Sink, ...]
    seeds: tuple[Seed, ...]
    models: tuple[ModelFile, ...]
    macros: tuple[MacroFile, ...]
    rules: Mapping[str, str] = field(default_factory=dict)
    written_vars: Mapping[str, object] = field(default_factory=dict)
    selectors: tuple[Selector, ...] = ()
    python: tuple[PythonModule, ...] = ()
    functions: tuple[PythonFunction, ...] = ()
    tests: tuple[WrittenTests, ...] = ()
    commented: tuple[CommentedFile, ...] = ()


class RenderYaml(Protocol):
    """Renders one YAML string that holds Jinja; given to the loader because jinja2 lives in compiler/render."""

    def __call__(self, text: str, location: Location, *, secrets: bool) -> object:
        """Returns the text rendered, or the expression's own value where the whole text is one `{{ }}`.

        With `secrets` an environment variable whose name starts with `SECRET_PREFIX` gives a `SecretText`; without, it
        is a finding. Raises: FindingsError.
        """


class MakeRenderYaml(Protocol):
    """Makes a `RenderYaml` once the variables are known."""

    def __call__(self, variables: Mapping[str, object], target: str | None) -> RenderYaml:
        """Returns a renderer whose var() reads `variables` and whose `target.name` is `target`."""
