"""Sources, seeds and models as DataFrames."""
