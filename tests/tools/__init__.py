"""Scripts that write pages of the documentation from the code."""
