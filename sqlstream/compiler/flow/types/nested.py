"""The types of structs, arrays and maps as they are built, and of what is taken out of them."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.common_type import common_type_of
from sqlstream.compiler.flow.types.typer import Handler, Typer
from sqlstream.project.types.types import Array, DataType, Field, Map, Struct


def field_type(base: DataType | None, name: str) -> DataType | None:
    """Returns the type of `base.name`: a struct's field, that field of every struct in an array, or a map's value."""
    if isinstance(base, Struct):
        field = base.field(name)
        return None if field is None else field.type
    if isinstance(base, Array) and isinstance(base.element, Struct):
        inner = field_type(base.element, name)
        return None if inner is None else Array(inner)
    return base.value if isinstance(base, Map) else None


def element_type(base: DataType | None) -> DataType | None:
    """Returns the type of an array's element or a map's value."""
    if isinstance(base, Array):
        return base.element
    return base.value if isinstance(base, Map) else None


def _column(typer: Typer, node: exp.Expr) -> DataType | None:
    """A column; or a variable's field, where it is written in other letters than sqlglot compares."""
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


def _identifier(typer: Typer, node: exp.Expr) -> DataType | None:
    variable = typer.variable(node.name)
    return None if variable is None else variable[0]


def _dot(typer: Typer, node: exp.Expr) -> DataType | None:
    name = node.args["expression"]
    return field_type(typer.of(node.this), name.name) if isinstance(name, exp.Identifier) else None


def _bracket(typer: Typer, node: exp.Expr) -> DataType | None:
    keys = node.expressions
    if len(keys) != 1 or isinstance(keys[0], exp.Slice):
        return None
    base = typer.of(node.this)
    key = keys[0]
    if isinstance(key, exp.Literal) and key.is_string and not isinstance(base, Map):
        return field_type(base, key.name)
    return element_type(base)


def _array(typer: Typer, node: exp.Expr) -> DataType | None:
    element = common_type_of(map(typer.of, node.expressions))
    return None if element is None else Array(element)


def _map(typer: Typer, node: exp.Expr) -> DataType | None:
    keys, values = node.args.get("keys"), node.args.get("values")
    if not isinstance(keys, exp.Array) or not isinstance(values, exp.Array):
        return None
    key, value = (common_type_of(map(typer.of, side.expressions)) for side in (keys, values))
    return None if key is None or value is None else Map(key, value)


def _struct(typer: Typer, node: exp.Expr) -> DataType | None:
    written = typer.name(node)
    fields: list[Field] = []
    for part in node.expressions:
        columns = typer.column(part) if part.is_star and written == "struct" else None
        if isinstance(columns, Struct):
            fields += columns.fields
            continue
        if not isinstance(part, exp.PropertyEQ):
            return None
        value = part.args["expression"]
        if written == "struct":
            name: str | None = _field_name(part.this, value, len(fields) + 1)
        else:
            name = part.this.name if _is_name_of(typer.sql, node.meta.get("end"), part.this.name) else None
        type_ = typer.of(value)
        if name is None or type_ is None:
            return None
        fields.append(Field(name, type_))
    return Struct(tuple(fields))


def _is_name_of(sql: str, start: int | None, name: str) -> bool:
    """Whether a name stands in quotes between commas after `named_struct`: it may be an expression, too."""
    if start is None:
        return False
    for quoted in (f"'{name}'", f'"{name}"'):
        at = sql.find(quoted, start)
        if at >= 0 and sql[:at].rstrip()[-1:] in "(," and sql[at + len(quoted) :].lstrip()[:1] == ",":
            return True
    return False


def _field_name(given: exp.Expr, value: exp.Expr, place: int) -> str:
    """The name that `struct` gives: an alias, the last part of a reference, or the place (`CreateStruct.create`)."""
    if isinstance(value, exp.Column | exp.Identifier) or given.meta:
        return given.name
    return reference_name(value) or f"col{place}"


def reference_name(value: exp.Expr) -> str | None:
    """Returns the name at the end of a reference: `a.b`, `m['k']`, `f(x).name`."""
    while isinstance(value, exp.Paren):
        value = value.this
    if isinstance(value, exp.Dot):
        return str(value.args["expression"].name)
    if isinstance(value, exp.Column | exp.Identifier):
        return value.name
    if not isinstance(value, exp.Bracket) or value.args.get("offset") is not None:
        return None
    key = value.expressions[0]
    return key.name if isinstance(key, exp.Literal) and key.is_string else None


def _tuple(typer: Typer, node: exp.Expr) -> DataType | None:
    fields = []
    for place, value in enumerate(node.expressions, 1):
        type_ = typer.of(value)
        if type_ is None:
            return None
        name = value.alias if isinstance(value, exp.Alias) else reference_name(value)
        fields.append(Field(name or f"col{place}", type_))
    return Struct(tuple(fields))


BY_CLASS: dict[type[exp.Expr], Handler] = {
    exp.Column: _column,
    exp.Identifier: _identifier,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Array: _array,
    exp.VarMap: _map,
    exp.Struct: _struct,
    exp.Tuple: _tuple,
}
