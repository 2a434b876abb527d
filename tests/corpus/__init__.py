"""The corpus: queries with the verdict of Spark's analyzer on each."""
