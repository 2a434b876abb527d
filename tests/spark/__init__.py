"""Tests that run Spark."""
