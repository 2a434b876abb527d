"""One use case per file. Each imports pyspark only when it needs it."""
