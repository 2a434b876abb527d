"""Read sources, seeds and models as DataFrames."""
