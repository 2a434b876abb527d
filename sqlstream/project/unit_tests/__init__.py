"""Unit tests in YAML files."""
