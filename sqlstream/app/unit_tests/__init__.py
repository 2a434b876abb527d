"""Unit tests: run, recorded, updated, watched."""
