"""The state signature: what decides the content of a query's state, from Spark's optimized plan."""
