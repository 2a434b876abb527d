"""Tests of the package, and the analysts' unit tests of its worked examples."""
