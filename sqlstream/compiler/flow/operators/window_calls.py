"""The functions with OVER of one SELECT."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.nodes import Node, WindowCall, WindowFunctions
from sqlstream.compiler.flow.text import Text, computed
from sqlstream.compiler.sql.spark_reading import write


def windowed(select: exp.Select, node: Node, text: Text) -> Node:
    """Returns the rows of `node` behind the functions with OVER in `select`; `node` itself where there are none."""
    if "OVER" not in text.read.keys:
        return node
    found = tuple(_call(window, text) for part in _parts(select) for window in part.find_all(exp.Window))
    if not found:
        return node
    return WindowFunctions(where=found[0].where, columns=node.columns, children=(node,), functions=found)


def _parts(select: exp.Select) -> Iterator[exp.Expr]:
    yield from computed(select)
    for name in ("qualify", "order"):
        if select.args.get(name) is not None:
            yield select.args[name]


def _call(window: exp.Window, text: Text) -> WindowCall:
    function = window.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        function = function.this
    order = window.args["order"].expressions if window.args.get("order") else []
    return WindowCall(
        name=text.function(function) or write(function).lower(),
        distinct=False,
        text=text.written(window),
        where=text.where(window),
        partition=tuple(map(text.written, window.args.get("partition_by") or ())),
        order=tuple(text.written(item.this if isinstance(item, exp.Ordered) else item) for item in order),
        descends=bool(order and order[0].args.get("desc")),
    )
