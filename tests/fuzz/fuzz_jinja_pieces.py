"""Pieces of templates for mutations."""

from __future__ import annotations

ATOMS = (
    *("1", "0", "-1", "1.5", "1e308", "10 ** 9", "true", "none", "'a'", "''", "'a,b'", "[]", "[1, 'a']", "{}"),
    *("{'a': 1}", "()", "(1,)", "nope", "nope.a", "nope.a.b", "nope()", "nope[0]", "ref", "source", "config", "var"),
    *("env_var", "log", "model", "model.name", "target", "target.name", "this", "self", "loop", "loop.index"),
    *("caller()", "varargs", "kwargs", "range(10)", "range(10 ** 9)", "range(0, 10, 0)", "range(-1)", "range('a')"),
    *("range(10)|list", "namespace(a=1)", "namespace()", "cycler(1, 2)", "cycler()", "joiner()", "joiner(1)"),
    *("dict(a=1)", "exceptions", "exceptions.warn('a')", "exceptions.raise_compiler_error('a')"),
    *("exceptions.raise_compiler_error(none)", "return(1)", "var('nope')", "var('nope', 1)", "var(1)", "var()"),
    *("var(none, none)", "var([])", "env_var('HOME')", "env_var('SQLSTREAM_SECRET_X')", "env_var(1)"),
    *("env_var('NOPE', none)", "ref('nope')", "ref()", "ref(1)", "ref('a', 'b')", "ref(['a'])", "ref(none)"),
    *("source('a')", "source('a', 'b')", "source(1, 2)", "source()", "config.get('sink')", "config.require('x')"),
    *("config.get([])", "run_started_at", "run_started_at.year", "run_started_at.strftime('%Y' * 1000)"),
    *("invocation_id", "fromjson('{')", "fromjson('[1, {}]')", "fromjson('NaN')", "tojson({})", "tojson(nope)"),
    *("tojson(range(3))", "log('a')", "log('a\\nb', info=true)", "log()", "log(log)", "do_nothing", "lipsum()"),
    *("''.__class__", "modules.re", "'%s' % 1", "'%(a)s' % {}", "'{}'.format()", "'{0.a}'.format(1)", "'a' * 10 ** 8"),
    *("9 ** 9 ** 9", "1 / 0", "1 % 0", "'a' + 1", "[1] + 'a'", "-'a'", "not nope", "1 < 'a'", "1 in 5", "'a' in nope"),
    *("[1][5]", "{}['a']", "'abc'[1:99]"),
)
"""Expressions."""

FILTERS = (
    *("abs", "attr", "batch", "capitalize", "center", "count", "default", "dictsort", "escape", "filesizeformat"),
    *("first", "float", "forceescape", "format", "groupby", "indent", "int", "items", "join", "last", "length"),
    *("list", "lower", "map", "max", "min", "pprint", "random", "reject", "rejectattr", "replace", "reverse", "round"),
    *("safe", "select", "selectattr", "slice", "sort", "string", "striptags", "sum", "title", "tojson", "trim"),
    *("truncate", "unique", "upper", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr", "nope", "as_bool"),
    *("as_native", "as_number", "set", "zip"),
)
"""Names of filters. Some do not exist."""

TESTS = (
    *("defined", "none", "divisibleby(0)", "divisibleby('a')", "sameas 1", "in 5", "nope", "iterable", "eq", "filter"),
)
"""Tests to use after `is`."""

STATEMENTS = (
    *("if true", "if nope", "elif x", "else", "endif", "for i in {}", "for i, j in {}", "for i in {} recursive"),
    *("endfor", "for i in {} if i", "macro m()", "macro m(a, b={})", "macro m(a=m())", "endmacro", "call m()"),
    *("call(x) m()", "endcall", "set x = {}", "set x", "endset", "set ns.a = {}", "set a, b = {}", "filter upper"),
    *("filter {}", "endfilter", "do {}", "do x.append(x)", "raw", "endraw", "block b", "endblock", "include 'a'"),
    *("import 'a' as b", "extends 'a'", "from 'a' import b", "with", "with a = {}", "endwith", "autoescape true"),
    *("endautoescape", "break", "continue", "trans", "endtrans", "debug", "test a", "endtest", "snapshot s"),
    *("materialization x", "", "-", "nope", "if", "for"),
)
"""Statements. `{}` is replaced by an expression."""

CONFIG_KEYS = (
    *("sink", "output_mode", "trigger", "checkpoint", "partition_by", "deduplicate", "tags", "enabled", "options"),
    *("meta", "previous_name", "materialized", "nope", "schema", "unique_key", "pre_hook", "alias", "rules"),
)
"""Keys of config()."""
