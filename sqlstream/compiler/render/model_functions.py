"""The functions of models' templates, as dbt has them: ref, source, config, log, return and exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlstream.compiler.render.jinja_functions import common_functions, refuse_secret, text_argument
from sqlstream.compiler.render.rendered import NoVersionError, Reference, RenderOptions, find_version
from sqlstream.compiler.render.sandbox.allowed import Relation, TemplateFunction, plain_value
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.render.sandbox.render_errors import MacroReturn, TemplateProblem
from sqlstream.compiler.sql.sql_text import view_name
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.values import ModelFile
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import Located

EFFECT_STEPS = 10
"""The steps that it costs to record a reference or a configured value with its location."""


@dataclass(frozen=True)
class TargetName:
    """The target as templates see it: its name."""

    name: str

    def __str__(self) -> str:
        return self.name


class ConfigFunction(TemplateFunction):
    """config(...) together with config.get() and config.require()."""

    def __init__(self, functions: ModelFunctions) -> None:
        super().__init__("config", functions.config)
        self.get = TemplateFunction("config.get", functions.config_get)
        self.require = TemplateFunction("config.require", functions.config_require)


class Exceptions:
    """The name `exceptions` of dbt's templates."""

    def __init__(self, functions: ModelFunctions) -> None:
        self.raise_compiler_error = TemplateFunction("raise_compiler_error", functions.raise_compiler_error)
        self.warn = TemplateFunction("warn", functions.warn)

    def __repr__(self) -> str:
        return "<exceptions>"


def model_names(environment: TemplateEnvironment, options: RenderOptions) -> dict[str, Any]:
    """Returns the names that are the same for all models. `names_of_model` adds the others."""
    functions = ModelFunctions(environment, options)
    return {
        **common_functions(environment, options.variables, options.env, refuse_secret, options.environment_read),
        "ref": TemplateFunction("ref", functions.ref),
        "source": TemplateFunction("source", functions.source),
        "log": TemplateFunction("log", functions.log),
        "return": TemplateFunction("return", functions.return_),
        "config": ConfigFunction(functions),
        "exceptions": Exceptions(functions),
        "target": TargetName(options.target.name),
        "execute": False,
        "run_started_at": options.run_started_at,
        "invocation_id": options.invocation_id,
        "project_name": options.project_name,
    }


def names_of_model(model: ModelFile) -> dict[str, Any]:
    """Returns the names that describe the model being rendered."""
    facts = {"name": model.name, "path": model.path, "folders": list(model.folders), "description": model.description}
    return {"this": Relation(model.name), "model": facts}


@dataclass(frozen=True)
class ModelFunctions:
    """The functions of models. They record their effects in the environment's state."""

    _environment: TemplateEnvironment
    _options: RenderOptions

    def ref(self, *args: object, **named: object) -> Relation:
        """Returns the view of a model or seed, and records the reference. `v` or `version` is a version of a model."""
        unknown = next((name for name in named if name not in ("v", "version")), None)
        if unknown is not None:
            why, fix = "its only named argument is `v`, the version of a model", "remove the argument"
            raise TemplateProblem("jinja-failed", f"ref() has no argument `{unknown}`", why, fix)
        names = _names("ref", args, (1, 2), "ref('model')")
        if len(names) == 2 and names[0] != self._options.project_name:
            raise TemplateProblem(
                "unknown-ref",
                f"{quoted(names[0])} is not the name of this project",
                f"the first of two names in ref() is the project, and this project is `{self._options.project_name}`",
                f"use ref() with {quoted(names[1])} alone; declare models of other projects as sources",
            )
        try:
            name = find_version(self._options.versions, names[-1], named.get("v", named.get("version")))
        except NoVersionError as error:
            raise TemplateProblem("unknown-ref", str(error), error.why, "use one of its versions") from error
        return self._record(Reference("ref", (name,), *self._here()))

    def source(self, *args: object, **named: object) -> Relation:
        """Returns the view of a source's table, and records the reference."""
        names = _names("source", (*args, *named.values()), (2,), "source('source', 'table')")
        return self._record(Reference("source", names, *self._here()))

    def _here(self) -> tuple[Location, tuple[Location, ...]]:
        self._environment.budget.spend(EFFECT_STEPS)
        *calls, location = (self._environment.location(*call) for call in self._environment.state.calls)
        return location, tuple(calls)

    def _record(self, reference: Reference) -> Relation:
        self._model()
        self._environment.state.references.append(reference)
        return Relation(view_name(reference.parts))

    def _model(self) -> ModelFile:
        model = self._environment.state.model
        if model is None:
            raise TemplateProblem(
                "jinja-failed",
                "a macro file calls this outside its macros",
                "macro files are loaded once, before any model",
                "move the call into a macro",
            )
        return model

    def config(self, *args: object, **named: object) -> str:
        """Records configuration. Returns an empty text."""
        self._model()
        given = dict(named)
        for argument in args:
            if not isinstance(argument, Mapping):
                raise TemplateProblem(
                    "jinja-failed",
                    f"config() needs keys with values, not a value of type {type(argument).__name__}",
                    "each configuration needs a name",
                    "use config(key=value) or config({'key': value})",
                )
            given = {**argument, **given}  # config({'a': 1}, a=2): the named one wins
        places = self._environment.key_locations(given)
        for key, value in given.items():
            self._environment.budget.spend(EFFECT_STEPS + self._environment.budget.weigh(value))
            self._environment.state.config[str(key)] = Located(plain_value(value), places[key])
        return ""

    def config_get(self, name: object, default: object = None) -> object:
        """Returns a configured value: the latest one from config(), or else the one from YAML."""
        found = self._configured(text_argument("config.get", name))
        return default if found is None else self._copied(found)

    def config_require(self, name: object) -> object:
        """Returns a required configured value."""
        name = text_argument("config.require", name)
        found = self._configured(name)
        if found is not None:
            return self._copied(found)
        raise TemplateProblem(
            "missing-key",
            f"the required configuration {quoted(name)} is not set",
            "the template requires it with config.require()",
            "set it with config() above this line, or in the properties of the model",
        )

    def _copied(self, found: Located) -> object:
        self._environment.budget.weigh(found.value)
        return plain_value(found.value)

    def _configured(self, name: str) -> Located | None:
        patches = [self._environment.state.config, *reversed(self._model().configs)]
        return next((patch[name] for patch in patches if name in patch), None)

    def log(self, message: object, info: bool = False) -> str:
        """Logs a message, and shows it to the user at once with `info`. Returns an empty text."""
        text = self._environment.text(message)
        self._environment.budget.check(text)
        if not self._environment.state.quiet:
            self._environment.state.logged.append((text, bool(info)))
            self._options.log(text, bool(info))
        return ""

    def return_(self, value: object = "") -> None:
        """Ends the macro. Its call returns `value`."""
        raise MacroReturn(value)

    def raise_compiler_error(self, message: object, _node: object = None) -> None:
        """Ends the rendering with the project's own message."""
        raise TemplateProblem("compiler-error", *_project_message(self._environment.text(message)))

    def warn(self, message: object, _node: object = None) -> str:
        """Records a warning with the project's own message. Returns an empty text."""
        message = self._environment.text(message)
        self._environment.budget.check(message)
        text, why, fix = _project_message(message)
        location, calls = self._here()
        finding = Finding("compiler-warning", text, why, fix, location, Severity.WARNING, calls)
        self._environment.state.findings.append(finding)
        return ""


def _project_message(message: str) -> tuple[str, str, str]:
    """The message, why and fix for a message that the project itself raises."""
    text = " ".join(message.split()).rstrip(".") or "the message is empty"
    return text, "a template of the project calls `exceptions` here", "follow the message"


def _names(function: str, args: tuple[object, ...], counts: tuple[int, ...], example: str) -> tuple[str, ...]:
    if len(args) in counts:
        return tuple(text_argument(function, argument) for argument in args)
    if function == "source" and len(args) == 1:
        example = f"source({str(args[0])!r}, 'table')" if str(args[0]).isidentifier() else example
    expected = " or ".join("one name" if count == 1 else "two names" for count in counts)
    raise TemplateProblem(
        "jinja-failed",
        f"{function}() needs {expected}, but has {len(args) or 'none'}",
        f"{function}() defines what the model reads",
        f"write {example}",
    )
