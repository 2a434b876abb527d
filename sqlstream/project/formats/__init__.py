"""The formats of sources and sinks: what Spark can do with each, and the options that each has."""
