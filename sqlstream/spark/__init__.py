"""The only package that speaks to Spark: session, views, sources, sinks, the runner and its progress."""
