"""The first stage: each model rendered, with its effective configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.cache.rendering import CachedRenderer, KeyedModel
from sqlstream.compiler.render.values import RenderOptions
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.config import ModelConfig, merge_configs
from sqlstream.project.values import ModelFile, Project

ALWAYS_SURE = frozenset({"jinja-syntax", "unknown-key"})
"""Codes of findings that depend only on the template."""

SURE = ALWAYS_SURE | {"invalid-value", "missing-env-var", "missing-var"}
"""Codes of findings that depend only on the template and project.yml."""


@dataclass(frozen=True)
class ConfiguredModel:
    """A rendered model with its effective configuration, and the location of each configured key."""

    rendered: KeyedModel
    config: ModelConfig
    places: Mapping[str, Location]

    @property
    def file(self) -> ModelFile:
        """The file of the model."""
        return self.rendered.model.file


def configure_models(project: Project, renderer: CachedRenderer) -> tuple[list[ConfiguredModel], list[Finding]]:
    """Returns the models, including disabled ones, and the findings about templates and configurations."""
    findings: list[Finding] = list(renderer.macro_findings)
    configured: list[ConfiguredModel] = []
    for file in project.models if not findings else ():
        try:
            rendered = renderer.render(file)
        except FindingsError as error:
            findings += error.findings
            continue
        merged = merge_configs([*file.configs, rendered.model.config])
        findings += [*rendered.model.findings, *merged.findings]
        if merged.config is not None:
            configured.append(ConfiguredModel(rendered, merged.config, merged.places))
    return configured, findings


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
