"""dbt's filters that give text its type: `{{ env_var('IS_NIGHT') | as_bool }}`.

See https://docs.getdbt.com/reference/dbt-jinja-functions/as_bool and the pages of the others. In dbt a value that is
of no such type is an error; here it stays what it is, and the key that takes it judges it.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[+-]?\d+(?P<fraction>\.\d+)?", re.ASCII)


def as_bool(value: object) -> object:
    """Returns true or false for text that says so in any letters, and every other value as it is."""
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def as_number(value: object) -> object:
    """Returns the number that decimal text writes, and every other value as it is."""
    match = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return value
    return float(match[0]) if match["fraction"] else int(match[0])


def as_native(value: object) -> object:
    """Returns what text writes, be it true, false or a number, and every other value as it is."""
    typed = as_bool(value)
    return as_number(typed) if typed is value else typed


DBT_FILTERS = {"as_bool": as_bool, "as_number": as_number, "as_native": as_native}
