"""The types of expressions, as Spark's analyzer finds them."""
