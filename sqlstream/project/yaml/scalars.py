"""The values of YAML scalars: YAML 1.1's null, booleans and decimal numbers as in PyYAML; everything else is text."""

from __future__ import annotations

import re
from typing import Any

import yaml

from sqlstream.location import Location
from sqlstream.project.yaml.nodes import YamlScalar

TAG_PREFIX = "tag:yaml.org,2002:"

LONGEST_NUMBER = 100
"""The most digits of a number. A longer one is text, because Python refuses to print integers of thousands of digits.
"""

NOT_MEANT = re.compile(r"[-+]?0[0-7_]+|.*:.*")
"""Numbers of YAML 1.1 that nobody means, so they are text: 01234 would be octal, 668, and 12:30 to the base 60, 750."""

JINJA_MARKS = ("{{", "{%", "{#")
"""What begins an expression, a statement and a comment of Jinja."""

BOOLEAN_WORDS = frozenset({"yes", "no", "on", "off"})
"""Words that YAML 1.1 reads as booleans, in any letter case."""

_RESOLVER: Any = yaml.resolver.Resolver()
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_CONSTRUCTORS: dict[str, Any] = {
    TAG_PREFIX + "null": _CONSTRUCTOR.construct_yaml_null,
    TAG_PREFIX + "bool": _CONSTRUCTOR.construct_yaml_bool,
    TAG_PREFIX + "int": _CONSTRUCTOR.construct_yaml_int,
    TAG_PREFIX + "float": _CONSTRUCTOR.construct_yaml_float,
}


_NUMBERS = (TAG_PREFIX + "int", TAG_PREFIX + "float")


def resolve_scalar(text: str, tag: str | None, *, plain_style: bool, location: Location) -> YamlScalar | None:
    """Returns the scalar, or None if its explicit tag is not supported or does not fit the text.

    `plain_style`: the text has no quotes and no tag. Dates and times stay text, because the schema decides on their
    type.
    """
    if plain_style:
        if text and text[0] not in yaml.resolver.Resolver.yaml_implicit_resolvers:
            return YamlScalar(text, text, location)
        tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))
        is_text = tag in _NUMBERS and NOT_MEANT.fullmatch(text)
        found = None if is_text else _construct(text, tag, location)
        return found or YamlScalar(text, text, location)
    if tag is None or tag in ("!", TAG_PREFIX + "str"):
        return YamlScalar(text, text, location)
    return _construct(text, tag, location)


def _construct(text: str, tag: str, location: Location) -> YamlScalar | None:
    construct = _CONSTRUCTORS.get(tag)
    if construct is None or len(text) > LONGEST_NUMBER:
        return None
    try:
        return YamlScalar(construct(yaml.ScalarNode(tag, text)), text, location)
    except (ValueError, LookupError, OverflowError):
        return None
