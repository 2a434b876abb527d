"""One expression: the column it gives, and what is wrong in it."""
