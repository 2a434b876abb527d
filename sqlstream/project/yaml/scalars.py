"""The values of YAML scalars: YAML 1.1's null, booleans and numbers as in PyYAML; everything else is text."""

from __future__ import annotations

from typing import Any

import yaml

from sqlstream.location import Location
from sqlstream.project.yaml.nodes import YamlScalar

TAG_PREFIX = "tag:yaml.org,2002:"

LONGEST_NUMBER = 100
"""The most digits of a number. A longer one is text, because Python refuses to print integers of thousands of digits.
"""

_RESOLVER: Any = yaml.resolver.Resolver()
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_CONSTRUCTORS: dict[str, Any] = {
    TAG_PREFIX + "null": _CONSTRUCTOR.construct_yaml_null,
    TAG_PREFIX + "bool": _CONSTRUCTOR.construct_yaml_bool,
    TAG_PREFIX + "int": _CONSTRUCTOR.construct_yaml_int,
    TAG_PREFIX + "float": _CONSTRUCTOR.construct_yaml_float,
}


def resolve_scalar(text: str, tag: str | None, *, plain_style: bool, location: Location) -> YamlScalar | None:
    """Returns the scalar, or None if its explicit tag is not supported or does not fit the text.

    `plain_style`: the text has no quotes and no tag. Dates and times stay text, because the schema decides on their
    type.
    """
    if plain_style:
        if text and text[0] not in yaml.resolver.Resolver.yaml_implicit_resolvers:
            return YamlScalar(text, text, location)
        return _construct(text, _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)), location) or YamlScalar(
            text, text, location
        )
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
