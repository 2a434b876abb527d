"""SQL as text: its tokens, clauses and relations, and sqlglot's tree of it."""
