"""The JVM and the Spark session: jars, start, calls, stop, plans, and errors as findings."""
