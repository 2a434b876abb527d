"""The file project.yml: validated, with its target, its variables, the severity of its findings, and the sqlstream that
it requires.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlstream.codes import CODES, LOWERABLE
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.documents import ProjectDocument
from sqlstream.project.configuration.target import (
    RequestedTarget,
    Target,
    build_target,
    choose_target,
    default_target,
    target_names,
)
from sqlstream.project.configuration.templates import (
    PROJECT_RULES,
    TARGET_RULES,
    MakeRenderYaml,
    RenderYaml,
    Rules,
    render_mapping,
    render_node,
)
from sqlstream.project.configuration.validate import boolean_words, is_template, validate_node
from sqlstream.project.files.files import PROJECT_FILE, ProjectFiles, project_not_found
from sqlstream.project.wording import did_you_mean, quoted
from sqlstream.project.yaml import YamlMapping, YamlNode, YamlSequence, entries_at, follow, locate, parse_yaml, plain
from sqlstream.version import __version__

_RENDERED_LATER = ("models", "seeds", "exposures", "targets")
"""Parts that can use the target's name and variables. Of the targets, only the one in use is rendered."""


@dataclass(frozen=True)
class Settings:
    """The contents of project.yml: `node` is the file with the target in use rendered, `written` the file before that,
    and `vars` are the effective variables.
    """

    document: ProjectDocument
    node: YamlMapping
    written: YamlMapping
    target: Target
    target_names: tuple[str, ...]
    default_target: str
    vars: Mapping[str, object]
    render: RenderYaml

    def section(self, *path: str) -> YamlMapping:
        """Returns the mapping at a path of keys, empty if it does not exist."""
        return _section(self.node, path)

    @property
    def written_vars(self) -> Mapping[str, object]:
        """The variables of the file, without those of a target, with Jinja unrendered."""
        return _text_keys(self.written.get("vars"))

    def written_section(self, *path: str) -> YamlMapping:
        """Returns the mapping at a path of keys with Jinja unrendered, empty if it does not exist."""
        return _section(self.written, path)


def load_settings(
    files: ProjectFiles,
    make_render: MakeRenderYaml,
    target: RequestedTarget,
    cli_vars: Mapping[str, object],
    findings: list[Finding],
) -> Settings | None:
    """Returns the settings, or None after adding errors to `findings`."""
    written = node = _read(files, findings)
    if written is None or node is None:
        return None
    known = len(findings)
    # Checks all targets before rendering, because the rest of the function needs a valid file.
    validate_node(ProjectDocument, render_mapping(node, None, PROJECT_RULES, findings), findings)
    if len(findings) > known:
        return None
    # `default_target` can use variables, and those of a target are known only after the choice.
    first = make_render({**_plain_vars(node), **cli_vars}, None)
    node = _render_parts(node, first, PROJECT_RULES, findings, leave=_RENDERED_LATER)
    name = choose_target(node, target, findings)
    if name is None:
        return None
    target_node = follow(node, ("targets", name, "vars"))
    target_vars = _text_keys(render_node(target_node, first, {}, findings) if target_node else None)
    variables = {**_text_keys(node.get("vars")), **target_vars, **cli_vars}
    finished = _finish(node, written, name, variables, make_render(variables, name), findings)
    findings.extend(boolean_words(written, *_TEXT_PATHS))
    return finished


_TEXT_PATHS = (("vars",), ("targets", "*", "vars"))
"""The parts of project.yml whose values can be text or booleans."""


def written_section(files: ProjectFiles, key: str) -> tuple[YamlMapping, str]:
    """Returns the mapping at a key of project.yml as written, and the project's name; both empty if missing. For a
    project.yml without valid settings.
    """
    written = _read(files, []) or YamlMapping((), Location(PROJECT_FILE))
    name = written.get("name")
    return _section(written, (key,)), str(plain(name)) if name is not None else ""


def _finish(
    node: YamlMapping,
    written: YamlMapping,
    name: str,
    variables: Mapping[str, object],
    render: RenderYaml,
    findings: list[Finding],
) -> Settings | None:
    """Renders the parts that can use the target's name and variables, and validates the whole file again."""
    known = len(findings)
    finished = _render_target(node, name, render, findings)
    document = validate_node(ProjectDocument, _without_other_targets(finished, name), findings)
    if document is None or len(findings) > known:
        return None
    chosen = build_target(name, document, finished, findings)
    problem = document.require_sqlstream and check_version(
        document.require_sqlstream, __version__, locate(finished, ("require_sqlstream",))
    )
    if problem:
        findings.append(problem)
    findings.extend(wrong_rules(finished))
    names, default = target_names(finished), default_target(finished)
    return Settings(document, finished, written, chosen, names, default, variables, render)


def _render_target(node: YamlMapping, name: str, render: RenderYaml, findings: list[Finding]) -> YamlMapping:
    """Returns project.yml with the parts rendered that can use the target's name and variables."""
    for section in ("models", "seeds", "exposures"):
        node = _replace(node, (section,), lambda part: render_node(part, render, {}, findings))
    return _replace(
        node,
        ("targets", name),
        lambda part: _render_parts(part, render, TARGET_RULES, findings, leave=("vars",)),
    )


def _section(root: YamlMapping, path: Sequence[str]) -> YamlMapping:
    node = follow(root, path)
    return node if isinstance(node, YamlMapping) else YamlMapping((), locate(root, path))


def _read(files: ProjectFiles, findings: list[Finding]) -> YamlMapping | None:
    if not files.exists(PROJECT_FILE):
        findings.append(project_not_found(files.root))
        return None
    try:
        return parse_yaml(files.read_text(PROJECT_FILE), PROJECT_FILE)
    except FindingsError as error:
        findings.extend(error.findings)
        return None


def _render_parts(
    node: YamlNode, render: RenderYaml, rules: Rules, findings: list[Finding], *, leave: tuple[str, ...]
) -> YamlMapping:
    """Returns the mapping rendered, except for the keys in `leave`."""
    if not isinstance(node, YamlMapping):
        return YamlMapping((), node.location)
    rendered = render_node(
        node.where(lambda entry: entry.key not in leave),
        render,
        rules,
        findings,
    )
    left = {entry.key: entry for entry in rendered.entries} if isinstance(rendered, YamlMapping) else {}
    return YamlMapping(tuple(left.get(entry.key, entry) for entry in node.entries), node.location)


def _replace(node: YamlMapping, path: tuple[str, ...], change: Callable[[YamlNode], YamlNode]) -> YamlMapping:
    """Returns the mapping with the value at `path`, if there is one, changed."""
    entries = []
    for entry in node.entries:
        value = entry.value
        if entry.key == path[0] and len(path) == 1:
            value = change(value)
        elif entry.key == path[0] and isinstance(value, YamlMapping):
            value = _replace(value, path[1:], change)
        entries.append(entry._replace(value=value))
    return YamlMapping(tuple(entries), node.location)


def _without_other_targets(node: YamlMapping, name: str) -> YamlMapping:
    """Returns project.yml without unused targets, which were validated before, unrendered."""

    def only(targets: YamlNode) -> YamlNode:
        if not isinstance(targets, YamlMapping):
            return targets
        return targets.where(lambda entry: entry.key == name)

    return _replace(node, ("targets",), only)


def _text_keys(variables: YamlNode | None) -> dict[str, object]:
    """The values of a mapping, with its keys as text; empty for any other node."""
    values = plain(variables) if variables else None
    return {str(key): value for key, value in values.items()} if isinstance(values, dict) else {}


def _plain_vars(node: YamlMapping) -> dict[str, object]:
    """Returns the variables without Jinja, which the Jinja of project.yml itself can read."""
    entries = entries_at(node, ("vars",))
    return {entry.key: plain(entry.value) for entry in entries if not _has_template(entry.value)}


def _has_template(node: YamlNode) -> bool:
    if isinstance(node, YamlMapping):
        return any(_has_template(entry.value) for entry in node.entries)
    if isinstance(node, YamlSequence):
        return any(_has_template(item) for item in node.items)
    return is_template(node.value)


_REQUIREMENT = re.compile(r"\s*(==|!=|>=|<=|>|<)?\s*(\d{1,9}(?:\.\d{1,9})*)\s*", re.ASCII)
_RELEASE = re.compile(r"\d+(?:\.\d+)*", re.ASCII)


def check_version(required: str, installed: str, location: Location) -> Finding | None:
    """Returns the finding for an installed version that does not meet all requirements, which are separated by commas.

    Only release numbers are compared, as in PEP 440; `1.0.dev1` counts as `1.0`.
    """
    requirements = [_REQUIREMENT.fullmatch(part) for part in required.split(",")]
    release = _RELEASE.match(installed)
    if any(match is None for match in requirements):
        return _not_a_requirement(required, location)
    if release and all(_meets(release[0], match[1] or "==", match[2]) for match in requirements if match):
        return None
    return Finding(
        "unsupported-version",
        f"the project needs sqlstream {required}",
        f"the installed version is {installed}",
        f"install sqlstream {required.strip()}, or change `require_sqlstream`",
        location,
    )


def _meets(installed: str, operator: str, required: str) -> bool:
    ours, theirs = [int(part) for part in installed.split(".")], [int(part) for part in required.split(".")]
    longest = max(len(ours), len(theirs))
    ours += [0] * (longest - len(ours))
    theirs += [0] * (longest - len(theirs))
    return {
        "==": ours == theirs,
        "!=": ours != theirs,
        ">=": ours >= theirs,
        "<=": ours <= theirs,
        ">": ours > theirs,
        "<": ours < theirs,
    }[operator]


def _not_a_requirement(required: str, location: Location) -> Finding:
    return Finding(
        "invalid-value",
        f"`require_sqlstream` cannot be {quoted(required)}",
        "it must list versions with ==, !=, >=, <=, > or <, separated by commas",
        "for example, use `>=0.1,<1`",
        location,
    )


def wrong_rules(project: YamlMapping) -> list[Finding]:
    """Returns the errors in the codes that `rules:` of project.yml lowers."""
    found = (lowering_problem(entry.key, entry.key_location) for entry in entries_at(project, ("rules",)))
    return [finding for finding in found if finding is not None]


def lowering_problem(code: str, location: Location) -> Finding | None:
    """Returns why findings of `code` cannot be lowered, None if they can."""
    if code in LOWERABLE:
        return None
    if code in CODES:
        message = f"findings with the code {quoted(code)} cannot be lowered"
        fix = "remove it here, and fix the problem"
        why = "warnings, infos and most errors of rules can be lowered, but not errors with which no query can start"
    else:
        message, fix = f"there is no finding with the code {quoted(code)}", did_you_mean(code, LOWERABLE)
        why = "the code of a finding is in brackets in its first line"
    return Finding("invalid-allow", message, why, fix, location)
