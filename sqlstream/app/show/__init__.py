"""`sqlstream show` and `sqlstream dev`: the first rows of models, seeds and sources."""
