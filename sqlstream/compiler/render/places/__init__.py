"""Maps rendered text back to the template that produced it."""
