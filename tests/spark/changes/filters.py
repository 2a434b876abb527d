"""Random pairs of queries that differ in their WHERE: plain conditions that often imply or exclude one another."""

from __future__ import annotations

from random import Random

from tests.spark.changes.edits import Edit, aggregation

_LITERALS = {"v": ("1", "2", "3", "1.5", "-1", "2.0"), "id": ("1", "35"), "d": ("1.5", "1.1", "2", "0.0")}
_TEXTS = {"k": ("'a'", "'b'", "'A'"), "g": ("'x'", "'y'", "''")}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_MODES = ("update", "update", "complete", "append", "distinct")
_WINDOW = "window(ts, '5 minutes'), k"


def random_filters(random: Random, number: int) -> Edit:
    """Returns a random edit of the WHERE of an aggregation, in all modes, or of a deduplication."""
    before = _condition(random, 2)
    after = _edited(before, random)
    name, mode = f"filter_{number}", random.choice(_MODES)
    where = [f"where {each}" if each else "" for each in (before, after)]
    if random.random() < 0.1:
        where[random.randrange(2)] = ""
    if mode == "distinct":
        texts = [aggregation("k, v", each).partition(" group by")[0] for each in where]
        more = ", deduplicate=['k']"
        return Edit(name, mode, "a filter", texts[0], texts[1], "", "append", None, more, more)
    key = random.choice(("k", "k", "v", "upper(k)", "k, g"))
    selected = random.choice(("count(*) as n", "sum(v) as s", "count(v) as n", "max(coalesce(v, 0)) as m"))
    if mode == "append":
        hint = "/*+ WATERMARK(ts, '10 minutes') */ window.start as at, k, "
        texts = [aggregation(hint + selected, each, keys=_WINDOW) for each in where]
    else:
        texts = [aggregation(f"{key}, {selected}", each, keys=key) for each in where]
    return Edit(name, mode, "a filter", texts[0], texts[1], "", mode)


def _condition(random: Random, depth: int) -> str:
    kind = random.choice(("test", "test", "and", "or", "not")) if depth else "test"
    if kind in ("and", "or"):
        return f"({_condition(random, depth - 1)} {kind} {_condition(random, depth - 1)})"
    return f"not ({_condition(random, depth - 1)})" if kind == "not" else _test(random)


def _test(random: Random) -> str:
    column = random.choice(("v", "v", "v", "id", "d", "k", "k", "g"))
    literals = (_LITERALS | _TEXTS)[column]
    kind = random.choice(("compare", "compare", "compare", "null", "in", "between", "reversed"))
    if kind == "null":
        return f"{column} is {random.choice(('', 'not '))}null"
    if kind == "in":
        chosen = random.sample(literals, random.choice((1, 2)))
        return f"{column} {random.choice(('', 'not '))}in ({', '.join(chosen)})"
    if kind == "between":
        return f"{column} between {random.choice(literals)} and {random.choice(literals)}"
    if kind == "reversed":
        return f"{random.choice(literals)} {random.choice(_COMPARISONS)} {column}"
    return f"{column} {random.choice(_COMPARISONS)} {random.choice(literals)}"


def _edited(before: str, random: Random) -> str:
    """Returns another condition, often one with the same meaning."""
    other = _test(random)
    return random.choice(
        (
            _condition(random, 1),
            f"{before} and {other}",
            f"{other} and {before}",
            f"{before} or {other}",
            f"not (not ({before}))",
            f"({before}) and ({before} or {other})",
            f"({before}) and v is not null",
            f"({before}) and k = 'a'",
            f"({before}) and k <> 'a'",
            f"({before}) and v > 0 and v > 1",
            f"({before}) and 1 < v and not v <= 1",
            before.replace("v > 1", "not v <= 1").replace("v = 1", "v in (1)").replace(" = ", " <=> "),
            before.replace(" or ", " and "),
            before.replace("1", "2"),
        )
    )
