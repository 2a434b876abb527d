"""Find, launch, call and stop the JVM and the Spark session."""
