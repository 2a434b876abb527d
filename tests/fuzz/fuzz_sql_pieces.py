"""Pieces of SQL for mutations."""

from __future__ import annotations

WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY"),
    *("LIMIT 1", "OFFSET 1", "UNION", "UNION ALL", "EXCEPT", "MINUS", "INTERSECT", "BY NAME", "DISTINCT", "ALL", "AS"),
    *("ON", "USING (a)", "JOIN", "LEFT JOIN", "FULL OUTER JOIN", "CROSS JOIN", "LEFT SEMI JOIN", "ANTI JOIN"),
    *("NATURAL JOIN", "ASOF JOIN", "LATERAL", "LATERAL VIEW explode(a) b AS c", "LATERAL VIEW OUTER", "WITH"),
    *("RECURSIVE", "WITH a AS (", "VALUES (1)", "TABLE", "STREAM", "STREAM(a)", "WATERMARK"),
    *("WATERMARK a DELAY OF INTERVAL 1 MINUTE", "DELAY OF", "IDENTIFIED BY a", "INTERVAL 1 DAY"),
    *("INTERVAL '1-1' YEAR TO MONTH", "TABLESAMPLE (1 ROWS)", "TABLESAMPLE (5 PERCENT)", "PIVOT (", ")", "UNPIVOT ("),
    *("WINDOW w AS (ORDER BY a)", "OVER ()", "OVER w", "OVER (PARTITION BY a ORDER BY b)", "ROWS BETWEEN"),
    *("FILTER (WHERE a)", "WITHIN GROUP (ORDER BY a)", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST(a AS int)"),
    *("a::int", "IN (1)", "IN (SELECT 1)", "EXISTS (SELECT 1)", "BETWEEN 1 AND 2", "LIKE 'a'", "ILIKE ANY ('a')"),
    *("RLIKE", "IS NULL", "NOT", "AND", "OR", "NULL", "TRUE", "CURRENT_DATE", "DATE '2024-01-01'", "TIMESTAMP 'x'"),
    *("X'1F'", "1.5BD", "10L", "window(a, '1 minute')", "session_window(a, '5 minutes')", "window.start", "count(*)"),
    *("count(DISTINCT a)", "sum(a)", "explode(a)", "from_json(a, 'b int')", "named_struct('a', 1)", "struct(1)"),
    *("transform(a, x -> x + 1)", "f(a => 1)", "row_number() OVER ()", "max_by(a, b)", "ROLLUP (a)", "CUBE (a)"),
    *("GROUPING SETS ((a), ())", "QUALIFY", "|>", "|> WHERE a", "|> SELECT a", "|> AGGREGATE count(*) GROUP BY a"),
    *("|> EXTEND 1", "FOR VERSION AS OF 1", "TIMESTAMP AS OF", "@v1", "/*+ BROADCAST(a) */"),
    *("/*+ WATERMARK(a, '1 day') */", "/*+", "*/", "--", "/*", "-- sqlstream: allow x because y\n", "INSERT INTO a"),
    *("CREATE TABLE a", "DROP", "SET a = b", "MERGE INTO a", "EXPLAIN", "DESCRIBE a", "USE a", ";", "; SELECT 1", "("),
    *(")", "((", "))", "[", "]", "{", "}", ",", ",,", ".", "..", "*", "a.*", "* EXCEPT (a)", "'", '"', "`", "``"),
    *("\\", "?", ":a", "$1", "$$", "@a", "#", "%", "^", "~", "!", "->", "=>", "::", "<=>", "<<", ">>>", "||", "1a.2b"),
    *("r'\\'", "''''"),
)
"""Pieces of Spark SQL. Some are not valid anywhere."""

NESTS: tuple[tuple[str, str, str], ...] = (
    ("(", "1", ")"),
    ("(select * from ", "a", ")"),
    ("(select ", "1", ")"),
    ("case when a then ", "1", " end"),
    ("case ", "1", " end"),
    ("not ", "a", ""),
    ("- ", "1", ""),
    ("~", "1", ""),
    ("f(", "1", ")"),
    ("coalesce(", "a", ", 1)"),
    ("struct(", "1", ")"),
    ("struct(a, ", "1", ")"),
    ("named_struct('a', ", "1", ")"),
    ("date(", "a", ")"),
    ("int(", "a", ")"),
    ("array(", "1", ")"),
    ("map(1, ", "1", ")"),
    ("cast(", "1", " as int)"),
    ("cast(a as array<", "int", ">)"),
    ("array<", "int", ">"),
    ("struct<a: ", "int", ">"),
    ("[", "1", "]"),
    ("{", "", "}"),
    ("exists (select 1 from a where ", "1", ")"),
    ("a in (select a from b where ", "1", ")"),
    ("x -> ", "x", ""),
    ("with a as (", "select 1", ") select * from a"),
    ("sum(", "1", ") over ()"),
    ("/*", "", "*/"),
    ("a between ", "1", " and 2"),
    ("if(a, ", "1", ", 2)"),
    ("interval ", "1 day", ""),
    ("(a join ", "b", " on 1)"),
    ("select ", "1", ""),
)
"""Text that can be nested: before, innermost, after."""

CHAINS = (
    *(" + 1", " and a", " or a = 1", " || 'a'", "::int", ".a", "[0]", "[a]", ", 1", ", a", " union all select 1"),
    *(" union select 1", " join a on 1", ", a", " lateral view explode(a) b as c", " is not null", " in (1)"),
    *(" |> where a", " => 1", " -> 1", " watermark a delay of interval 1 day", " over ()", " as a", " -", "--\n"),
    *("/**/", "'", "`", ";", "(1),", " when a then 1"),
)
"""Text that can be repeated after something."""
