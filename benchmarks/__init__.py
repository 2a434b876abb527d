"""Benchmarks: ratios to a peer or to a script written by hand, in the same run."""
