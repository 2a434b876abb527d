"""Unit tests as YAML files have them."""
