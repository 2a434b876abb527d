"""`sqlstream run`, `build` and `retry`: from the selected queries to their results."""
