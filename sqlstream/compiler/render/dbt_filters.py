"""dbt's filters that convert text: `{{ env_var('IS_NIGHT') | as_bool }}`.

See https://docs.getdbt.com/reference/dbt-jinja-functions/as_bool and the pages of the others. dbt raises an error for a
value of another type. Here the value stays unchanged, and the key that gets it validates it.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?\d+(?P<fraction>\.\d+)?", re.ASCII)


def as_bool(value: object) -> object:
    """Returns a boolean for the text true or false in any letter case, and every other value unchanged."""
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def as_number(value: object) -> object:
    """Returns the number in decimal text, and every other value unchanged."""
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return value
    return float(match[0]) if match["fraction"] else int(match[0])


def as_native(value: object) -> object:
    """Returns the boolean or number in a text, and every other value unchanged."""
    typed = as_bool(value)
    return as_number(typed) if typed is value else typed


DBT_FILTERS = {"as_bool": as_bool, "as_number": as_number, "as_native": as_native}
