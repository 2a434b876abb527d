"""The cases of `make bench-test` for each tool: sqlstream, pytest with PySpark, and dbt."""
