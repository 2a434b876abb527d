"""The parts of `make bench-nexmark`: a project with Nexmark's queries, events, and the queries in plain PySpark."""
