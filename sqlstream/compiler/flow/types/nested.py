"""The types of references, and of structs, arrays and maps that an expression builds or takes apart."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.families import common_type_of
from sqlstream.compiler.flow.types.literals import Handlers, TypeResolver
from sqlstream.compiler.flow.types.values import array_of, map_of, struct_of
from sqlstream.project.types.types import Array, DataType, Map, Struct


def field_type(base: DataType | None, name: str) -> DataType | None:
    """Returns the type of `base.name`: a struct's field, that field of every struct in an array, or a map's value."""
    if isinstance(base, Struct):
        field = base.field(name)
        return None if field is None else field.type
    if isinstance(base, Array) and isinstance(base.element, Struct):
        return array_of(field_type(base.element, name))
    return base.value if isinstance(base, Map) else None


def element_type(base: DataType | None) -> DataType | None:
    """Returns the type of an array's element or a map's value."""
    if isinstance(base, Array):
        return base.element
    return base.value if isinstance(base, Map) else None


def _column(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of a column, or of a lambda variable that sqlglot misses because of its letter case."""
    if node.is_star:
        return None
    parts = node.parts if isinstance(node, exp.Column) else []
    variable = typer.variable(parts[0].name) if parts else None
    if variable is None:
        return typer.column(node)
    found = variable[0]
    for part in parts[1:]:
        found = field_type(found, part.name)
    return found


def _identifier(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    variable = typer.variable(node.name)
    return None if variable is None else variable[0]


def _dot(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    name = node.args["expression"]
    return field_type(typer.of(node.this), name.name) if isinstance(name, exp.Identifier) else None


def _bracket(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        return None
    base, key = typer.of(node.this), node.expressions[0]
    if isinstance(key, exp.Literal) and key.is_string and not isinstance(base, Map):
        return field_type(base, key.name)
    return element_type(base)


def _array(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    return array_of(common_type_of(typer.all_of(node)))


def _map(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    keys, values = node.args.get("keys"), node.args.get("values")
    if not isinstance(keys, exp.Array) or not isinstance(values, exp.Array):
        return None
    return map_of(common_type_of(typer.all_of(keys)), common_type_of(typer.all_of(values)))


def _struct(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    is_named = typer.name(node) != "struct"
    fields: list[tuple[str, DataType | None]] = []
    for part in node.expressions:
        columns = typer.column(part) if part.is_star and not is_named else None
        if isinstance(columns, Struct):
            fields += [(field.name, field.type) for field in columns.fields]
        elif not isinstance(part, exp.PropertyEQ) or (is_named and not _is_literal_name(part, node, typer.sql)):
            return None
        else:
            value = part.args["expression"]
            name = part.this.name if is_named else _field_name(part.this, value, len(fields) + 1)
            fields.append((name, typer.of(value)))
    return struct_of(fields)


def _is_literal_name(part: exp.PropertyEQ, call: exp.Expr, sql: str) -> bool:
    """Returns whether the name of a field is a literal in a call of `named_struct`: it can be any expression."""
    name, start = part.this.name, call.meta.get("end")
    for quoted in (f"'{name}'", f'"{name}"'):
        at = -1 if start is None else sql.find(quoted, start)
        if at >= 0 and sql[:at].rstrip()[-1:] in "(," and sql[at + len(quoted) :].lstrip()[:1] == ",":
            return True
    return False


def _field_name(given: exp.Expr, value: exp.Expr, place: int) -> str:
    """Returns the name in a `struct`: an alias, the last part of a reference, or the place (`CreateStruct.create`)."""
    if isinstance(value, exp.Column | exp.Identifier) or given.meta:
        return given.name
    return reference_name(value) or f"col{place}"


def reference_name(value: exp.Expr) -> str | None:
    """Returns the last name of a reference such as `a.b`, `m['k']` or `f(x).name`; None for other expressions."""
    value = value.unnest()
    if isinstance(value, exp.Dot):
        return str(value.args["expression"].name)
    if isinstance(value, exp.Column | exp.Identifier):
        return value.name
    if not isinstance(value, exp.Bracket) or value.args.get("offset") is not None:
        return None
    key = value.expressions[0]
    return key.name if isinstance(key, exp.Literal) and key.is_string else None


def _tuple(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    names = [value.alias if isinstance(value, exp.Alias) else reference_name(value) for value in node.expressions]
    named = (name or f"col{place}" for place, name in enumerate(names, 1))
    return struct_of(zip(named, typer.all_of(node), strict=True))


HANDLERS: Handlers = {
    exp.Column: _column,
    exp.Identifier: _identifier,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Array: _array,
    exp.VarMap: _map,
    exp.Struct: _struct,
    exp.Tuple: _tuple,
}
