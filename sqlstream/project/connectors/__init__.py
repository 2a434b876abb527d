"""Connectors: the jars that Spark needs for formats that are not part of it."""
