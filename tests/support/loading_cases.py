"""Helpers for the loading tests: small projects on disk, and a substitute for the Jinja of compiler/render."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.docs_blocks import DocsBlock
from sqlstream.project.configuration.templates import RenderYaml
from sqlstream.project.loading import LoadResult, load_project
from sqlstream.project.secret_text import SecretName, SecretText
from sqlstream.project.values import Project

_EXPRESSION = re.compile(r"\{\{ (\w+)\('?([^')]*)'?\) \}\}")


def make_render(variables: Mapping[str, object], target: str | None) -> RenderYaml:
    """Returns a renderer of `{{ var('x') }}`, `{{ secret('X') }}` and `{{ target() }}`."""
    return _Renderer(variables, target)


@dataclass(frozen=True)
class _Renderer:
    """Renders calls of a function with one name. It ignores docs blocks."""

    variables: Mapping[str, object]
    target: str | None

    def with_docs(self, blocks: Sequence[DocsBlock]) -> RenderYaml:
        """Returns the same renderer."""
        return self

    def __call__(self, text: str, location: Location, *, secrets: bool) -> object:
        """Returns the rendered text."""
        variables, target = self.variables, self.target

        def value(match: re.Match[str]) -> object:
            kind, name = match.groups()
            if kind == "target":
                return target
            if kind == "secret" and secrets:
                return SecretText((SecretName(name),))
            if kind == "var" and name in variables:
                return variables[name]
            raise FindingsError([Finding("missing-var", f"no `{name}`", "why", "fix", location)])

        whole = _EXPRESSION.fullmatch(text)
        return value(whole) if whole else _EXPRESSION.sub(lambda match: str(value(match)), text)


def write_project(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes these files and, if it is missing, a minimal project.yml; returns `root`."""
    for name, content in {"project.yml": "name: shop\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def load(
    root: Path,
    files: Mapping[str, str | bytes],
    target: str | None = None,
    cli_vars: Mapping[str, object] | None = None,
) -> LoadResult:
    """Returns the result of loading a project of these files."""
    return load_project(write_project(root, files), make_render=make_render, target=target, cli_vars=cli_vars or {})


def load_good(
    root: Path,
    files: Mapping[str, str | bytes],
    target: str | None = None,
    cli_vars: Mapping[str, object] | None = None,
) -> Project:
    """Returns the valid project of these files."""
    result = load(root, files, target, cli_vars)
    assert result.findings == ()
    assert result.project is not None
    return result.project


def found(result: LoadResult) -> list[str]:
    """Returns the findings as `path:line:column code`."""
    for finding in result.findings:
        assert_readable(finding)
    return [f"{finding.location} {finding.code}" for finding in result.findings]


def assert_readable(finding: Finding) -> None:
    """Asserts the form of each finding: three texts of one line each, without a period after the first."""
    for line in (finding.message, finding.why, finding.fix):
        assert line
        assert "\n" not in line
    assert not finding.message.endswith(".")
