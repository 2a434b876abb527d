"""Errors of templates as findings with exact locations, and suggestions for undefined names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from traceback import walk_tb

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.lexer import Lexer

from sqlstream.compiler.render.model_functions import ConfigFunction
from sqlstream.compiler.render.sandbox.allowed import METHODS
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment, TemplateSource, offset_tokens
from sqlstream.compiler.render.sandbox.render_errors import MacroReturn, TemplateProblem, UndefinedUse, unsafe_use
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.dbt_words import TEMPLATE_NAMES, TEMPLATE_TAGS
from sqlstream.project.wording import did_you_mean

MOST_CALLS = 8
"""The most calls that a finding names: a recursion has hundreds, and the first ones show where it began."""

BLOCKS = ("if", "for", "set", "with", "macro", "call", "filter", "test", "data_test")
"""The statements that have an end. `set` has one only without a value."""

TAGS = (*BLOCKS, *(f"end{block}" for block in BLOCKS), "elif", "else", "do", "raw", "endraw")
"""The statements that templates can use."""

WORDS = {"end of print statement": "}}", "end of statement block": "%}"}
"""Jinja's names for tokens, as the user writes them."""

OPERANDS = re.compile(
    r"unsupported operand type\(s\) for (\S+)(?: or .*)?: '(\w+)' and '(\w+)'"
    r"|can only concatenate (\w+) \(not \"(\w+)\"\) to"
)
"""Python's two messages for operators whose operands do not fit together."""

LONGEST_MESSAGE = 300
"""The most characters of a Python error's message that are shown."""

_UNQUOTED = re.compile(r"\b(?:ref|source|var|env_var)\(\s*(?:[^(){}]*,\s*)?$")
"""The text before an argument of a function that takes names as text."""

KINDS = {
    "dict": "mapping",
    "tuple": "list",
    "str": "text",
    "int": "number",
    "float": "number",
    "Relation": "relation",
    "TemplateFunction": "function",
    "ConfigFunction": "function",
    "TargetName": "target",
    "Macro": "macro",
}
"""The user's words for Python's types."""


def template_finding(error: Exception, environment: TemplateEnvironment, source: TemplateSource) -> Finding:
    """Returns the finding for an error of reading or running the template of `source`."""
    # Code that Jinja has generated has this global, so such a frame shows that the template has begun to run.
    has_run = any("__jinja_template__" in frame.f_globals for frame, _ in walk_tb(error.__traceback__))
    return (running_finding if has_run else reading_finding)(error, environment, source)


def reading_finding(error: Exception, environment: TemplateEnvironment, source: TemplateSource) -> Finding:
    """Returns the finding for an error of parsing and compiling `source`."""
    if isinstance(error, TemplateSyntaxError):
        return _syntax_finding(error, environment, source)
    if isinstance(error, TemplateProblem):
        return _finding(error, source.location(error.offset or 0), ())
    # Python's compiler refuses the generated code as a whole, and then no place is known.
    offset = 0 if isinstance(error, SyntaxError) else environment.read_until
    return Finding(
        "jinja-limit",
        f"the template cannot be compiled: {re.sub(r' .<template>, line .*', '', _one_line(error))}",
        "Jinja limits the nesting of expressions, loops and blocks, and the length of literals",
        "split the expression here with {% set %}, or nest fewer blocks",
        source.location(min(offset, len(source.text))),
    )


def _syntax_finding(error: TemplateSyntaxError, environment: TemplateEnvironment, source: TemplateSource) -> Finding:
    # Here `lineno` is an offset (`offset_tokens`).
    offset = min(max(error.lineno - 1, 0), len(source.text))
    first, _, rest = (error.message or "the template cannot be parsed").partition(". ")
    message = _in_words(re.sub(r" at \d+$", "", first))
    if name := re.match(r"No (filter|test) named `(.+)`", message):
        return _unknown_filter(name[1], name[2], source.location(source.find_word(name[2], offset)))
    if message == "Unexpected end of template":
        offset = _unclosed_block(environment.lexer, source, offset)
    elif message == "Missing end of comment tag":
        offset = max(source.text.rfind("{#", 0, offset + 2), 0)
    return Finding(
        "jinja-syntax",
        message[:1].lower() + message[1:],
        _in_words(rest) or "the whole template must be valid before it is rendered",
        _missing_brace(message, source.text, offset) or _syntax_fix(message, rest),
        source.location(offset),
    )


def _unclosed_block(lexer: Lexer, source: TemplateSource, end: int) -> int:
    """The 0-based offset of the innermost block that is still open at the end, or `end` if there is none."""
    opened: list[int] = []
    words: list[tuple[str, int]] = []
    for offset, kind, value in offset_tokens(lexer, source.text, source.path):
        if kind == "block_begin":
            words = []
        elif kind in ("name", "operator"):
            words.append((value, offset - 1))
        elif kind == "block_end" and words:
            word, start = words[0]
            is_block = word in BLOCKS and not (word == "set" and "=" in dict(words))
            opened = opened[:-1] if word.startswith("end") else [*opened, start] if is_block else opened
    return opened[-1] if opened else end


def _missing_brace(message: str, text: str, offset: int) -> str:
    """The fix for a single `}` that closes nothing in the expression."""
    if message != "unexpected `}`":
        return ""
    is_output = text.rfind("{{", 0, offset) > text.rfind("{%", 0, offset)
    return "use `}}`" if is_output else "use `%}`"


def _in_words(message: str) -> str:
    for word, written in WORDS.items():
        message = message.replace(word, written)
    return re.sub(r"'([^']+)'", r"`\1`", message.rstrip("."))


def _syntax_fix(message: str, rest: str) -> str:
    if tag := re.match(r"Encountered unknown tag `(\w+)`", message):
        if "looking for" in rest:
            return "close the inner block first"
        if tag[1].removeprefix("end") in TEMPLATE_TAGS:
            return TEMPLATE_TAGS[tag[1].removeprefix("end")]
        return "remove it, or add the block that it ends" if tag[1] in TAGS else did_you_mean(tag[1], TAGS)
    if block := re.search(r"needs to be closed is '(\w+)'", rest):
        return f"close the block with {{% end{block[1]} %}}"
    if message == "Missing end of comment tag":
        return "close the comment with #}"
    if re.search("""unexpected char ["'`]{2}""", message) or 'char "\'"' in message:
        return "close the text with a second quote"
    return "fix the expression here, or use {% raw %} around text that is not Jinja"


def _unknown_filter(kind: str, name: str, location: Location) -> Finding:
    from jinja2.filters import FILTERS
    from jinja2.tests import TESTS

    return Finding(
        "jinja-undefined",
        f"there is no {kind} `{name}`",
        f"templates have Jinja's built-in {kind}s, except those for HTML and random choice",
        did_you_mean(name, [known for known in (FILTERS if kind == "filter" else TESTS) if known != name]),
        location,
    )


def running_finding(error: Exception, environment: TemplateEnvironment, source: TemplateSource) -> Finding:
    """Returns the finding for an error of the running template of `source`."""
    if isinstance(error, TemplateProblem) and error.offset is not None:
        return _finding(error, source.location(error.offset), ())
    path, offset, calls = _place(error, environment, source)
    # No name with an underscore is available in templates, whether it exists or not.
    if isinstance(error, UndefinedUse) and error.owner is not None and str(error.name).startswith("_"):
        error = unsafe_use(f"`{error.name}`")
    if isinstance(error, UndefinedUse):
        return _undefined_finding(error, environment, path, offset, calls)
    return _finding(_problem(error), environment.location(path, offset), calls)


def _problem(error: Exception) -> TemplateProblem:
    if isinstance(error, TemplateProblem):
        return error
    if isinstance(error, RecursionError):
        return TemplateProblem(
            "jinja-limit",
            "the template calls itself too often, or nests values too deeply",
            "a recursive macro must end within some hundred calls",
            "check the condition that ends the recursion, or use a loop",
        )
    if isinstance(error, SecurityError):
        return unsafe_use("this expression")
    return _failed_expression(error)


def _failed_expression(error: Exception) -> TemplateProblem:
    message = _one_line(error) or "the expression failed"
    why = f"the expression raised {type(error).__name__} for these values"
    fix = "fix the expression, or convert its values first (|int, |string, |list)"
    if isinstance(error, MacroReturn):
        message, why = "return() is used outside a macro", "return() returns the value of a macro"
        fix = "use the value itself in {{ }}"
    elif isinstance(error, TypeError) and message.startswith("macro "):
        message, why = _in_words(message), "the definition of the macro has other parameters"
        fix = "pass the arguments that the macro defines"
    elif isinstance(error, TypeError) and (operands := OPERANDS.match(message)):
        left, right = (_type_in_words(name) for name in operands.groups()[1:] if name)
        message = f"`{operands[1] or '+'}` cannot be applied to {left} and {right}"
        why = "the types of both sides must fit, such as two numbers"
        fix = "convert one side (|int, |float, |string), or join texts with ~"
    return TemplateProblem("jinja-failed", message, why, fix)


def _finding(problem: TemplateProblem, location: Location, calls: tuple[Location, ...]) -> Finding:
    return Finding(problem.code, problem.message, problem.why, problem.fix, location, calls=calls)


def _place(
    error: Exception, environment: TemplateEnvironment, source: TemplateSource
) -> tuple[str, int, tuple[Location, ...]]:
    """The path and offset of the innermost location in a template, and the calls that led to it."""
    path, offset, in_call = source.path, 0, False
    for frame, line in walk_tb(error.__traceback__):
        template = frame.f_globals.get("__jinja_template__")
        if template is not None:
            path, offset, in_call = template.name, template.get_corresponding_lineno(line) - 1, False
        elif frame.f_code is TemplateEnvironment.call_at.__code__:
            in_call = True
    calls = list(environment.state.calls)
    # The innermost call is where the error is, not a call that led there.
    if in_call and calls:
        path, offset = calls.pop()
    return path, offset, tuple(environment.location(*call) for call in calls[:MOST_CALLS])


def _undefined_finding(
    error: UndefinedUse, environment: TemplateEnvironment, path: str, offset: int, calls: tuple[Location, ...]
) -> Finding:
    """Returns the finding for an undefined name or attribute, located in the template of `path`."""
    name = str(error.name) if error.name is not None else ""
    source = environment.sources[path]
    location = source.location(source.find_word(name, offset) if name else offset)
    # Jinja's messages for a parameter without a value, and for `caller` outside a {% call %} block.
    if not name or "was not provided" in str(error) or "No caller" in str(error):
        message, why = _one_line(error).replace("'", "`"), "the template uses a value that its caller does not pass"
        fix = "pass the argument in the call, or give the parameter of the macro a default"
    elif error.owner is None:
        message = f"`{name}` is not defined"
        why = "a template can use the functions of sqlstream, the macros in macros/ and the variables that it sets"
        fix = _fix_of_name(name, source.text[: source.find_word(name, offset)], _known_names(environment, path))
    else:
        owner, kind = error.owner, type(error.owner).__name__
        message = f"this {KINDS.get(kind, kind.lower())} has no `{name}`"
        contents = f"{len(owner)} entries" if isinstance(owner, list | tuple | dict) else "none with that name"
        why = f"the template uses it here, but the value has {contents}"
        fix = _fix_of_attribute(name, error.owner)
    return Finding("jinja-undefined", message, why, fix, location, calls=calls)


def _fix_of_name(name: str, before: str, known: Iterable[str]) -> str:
    """The fix for an unknown name after the text `before`. The name may be a text without quotes."""
    function = _UNQUOTED.search(before)
    if function is not None:
        ending = ", '...')" if function.group().startswith("source") and "," not in function.group() else ")"
        return f"put the name in quotes: {' '.join(function.group().split())}'{name}'{ending}".replace(",'", ", '")
    return TEMPLATE_NAMES.get(name) or did_you_mean(name, known)


def _fix_of_attribute(name: str, owner: object) -> str:
    if isinstance(owner, ConfigFunction):
        return f"use config.get('{name}')"
    names = _attributes(owner)
    return did_you_mean(name, names) if names else f"remove `.{name}`"


def _known_names(environment: TemplateEnvironment, path: str) -> Iterable[str]:
    """All names that the template can use: those of the environment, and those that it assigns."""
    tree = environment.parse_source(environment.sources[path])
    assigned = [name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"]
    return [*environment.names, *assigned, *(macro.name for macro in tree.find_all(nodes.Macro))]


def _type_in_words(type_name: str) -> str:
    """Returns the user's word for a Python type."""
    known = {"str": "text", "NoneType": "nothing"}.get(type_name)
    return known or f"a {KINDS.get(type_name, type_name)}"


def _attributes(owner: object) -> list[str]:
    if isinstance(owner, dict):
        return [key for key in owner if isinstance(key, str)]
    if type(owner) in METHODS:
        return list(METHODS[type(owner)])
    return [name for name in dir(owner) if not name.startswith("_") and not (callable(owner) and name == "name")]


def _one_line(error: Exception) -> str:
    """Returns the message of a Python error on one line, shortened."""
    text = re.sub(r"[\w.<>]*<locals>\.(\w+)\(\)", r"\1()", " ".join(str(error).split())).rstrip(".")
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "…"
