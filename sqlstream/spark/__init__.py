"""What uses Spark: the JVM and its session, storage, sources, sinks, publication, and the runner of queries."""
