"""The parts of `make bench-run`: rows, projects, the queries in plain PySpark, and measurements."""
