"""The jars of connectors: found in the cache or a repository, checked, and given to Spark."""
