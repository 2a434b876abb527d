"""The first stage: each model rendered, with its effective configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from sqlstream.compiler.cache import CachedModel, Memory
from sqlstream.compiler.render.rendered import RenderOptions
from sqlstream.compiler.rendering import CachedRenderer
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.config import MergedConfig, ModelConfig, merge_configs
from sqlstream.project.values import ModelFile, Project

ALWAYS_SURE = frozenset({"jinja-syntax", "unknown-key"})
"""Codes of findings that depend only on the template."""

SURE = ALWAYS_SURE | {"invalid-value", "missing-env-var", "missing-var"}
"""Codes of findings that depend only on the template and project.yml."""


@dataclass(frozen=True)
class ConfiguredModel:
    """A rendered model with its effective configuration, and the location of each configured key.

    `output_name` is `model.name` in the sink: a renamed query keeps its checkpoint, and so the folder of its output.
    """

    rendered: CachedModel
    config: ModelConfig
    locations: Mapping[str, Location]
    output_name: str

    @property
    def file(self) -> ModelFile:
        """The file of the model."""
        return self.rendered.model.file


def configure_models(project: Project, renderer: CachedRenderer) -> tuple[list[ConfiguredModel], list[Finding]]:
    """Returns the models, including disabled ones, and the findings about templates and configurations."""
    findings: list[Finding] = list(renderer.macro_findings)
    configured: list[ConfiguredModel] = []
    # Without its macros, each template would fail.
    for file in project.models if not findings else ():
        try:
            rendered = renderer.render(file)
        except FindingsError as error:
            findings += error.findings
            continue
        merged = merge_configs([*file.configs, rendered.model.config])
        findings += [*rendered.model.findings, *merged.findings]
        if merged.config is not None:
            name = merged.config.previous_name or file.name
            configured.append(ConfiguredModel(rendered, merged.config, merged.locations, name))
            configured += _further_queries(file, merged, merged.config, renderer)
    return configured, [*findings, *_taken_names(configured)]


def _further_queries(
    file: ModelFile, merged: MergedConfig, config: ModelConfig, renderer: CachedRenderer
) -> list[ConfiguredModel]:
    """Returns a model for each query of `file` after the first one."""
    place = merged.locations.get("sink", file.location)
    made = [model_of_sink(file, place, config, sink) for sink in config.separate_sinks]
    name = config.previous_name or file.name
    return [ConfiguredModel(renderer.render(each), own, merged.locations, name) for each, own in made]


def model_of_sink(file: ModelFile, place: Location, config: ModelConfig, sink: str) -> tuple[ModelFile, ModelConfig]:
    """Returns the model that writes the rows of `file` to `sink`, one of its further sinks, and its configuration.

    `place` is the location of the sinks. The query has its own checkpoint, and the same trigger, mode and keys.
    """
    name = query_of_sink(file.name, sink)
    source = ModelFile(
        name=name,
        path=str(PurePosixPath(file.path).with_name(f"{name}.sql")),
        text=f"select *\nfrom {{{{ ref('{file.name}') }}}}\n",
        folders=file.folders,
        description=file.description,
        columns=(),
        configs=(),
        properties_location=file.properties_location,
        written=file.written,
        declared_at=place,
        rows_of=file.name,
        constraints=file.constraints,
    )
    changed = {
        "sink": sink,
        "materialized": "view",
        "deduplicate": (),
        "checkpoint": config.checkpoint and query_of_sink(config.checkpoint, sink),
        "previous_name": config.previous_name and query_of_sink(config.previous_name, sink),
    }
    return source, config.model_copy(update=changed)


def query_of_sink(model: str, sink: str) -> str:
    """Returns the name of the query that writes `model` to a further sink."""
    return f"{model}__{sink}"


def _taken_names(configured: Sequence[ConfiguredModel]) -> list[Finding]:
    """Returns a finding for each query of a further sink that has the name of another model."""
    names = Counter(model.file.name.casefold() for model in configured)
    return [
        Finding(
            "duplicate-name",
            f"the query of `{model.file.rows_of}` for sink `{model.config.sink_name}` has the same name as another "
            f"model, `{model.file.name}`",
            "each sink after the first has a query with the names of the model and of the sink",
            "rename the other model",
            model.file.location,
        )
        for model in configured
        if model.file.rows_of is not None and names[model.file.name.casefold()] > 1
    ]


def template_findings(project: Project, options: RenderOptions, *, knows_variables: bool) -> tuple[Finding, ...]:
    """Returns the certain errors in the templates of a project with unreadable files."""
    renderer = CachedRenderer(project, quiet(options), Memory())
    sure = SURE if knows_variables else ALWAYS_SURE
    return tuple(finding for finding in configure_models(project, renderer)[1] if finding.code in sure)


def quiet(options: RenderOptions) -> RenderOptions:
    """Returns the options without logging."""
    return replace(options, log=_ignore)


def _ignore(_message: str, _info: bool) -> None:
    """Logs nothing."""
