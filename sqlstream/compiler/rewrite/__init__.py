"""From rendered SQL to the text that Spark runs."""
