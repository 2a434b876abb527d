"""Pages for a browser: their scripts, styles and the static site. Knows nothing of Spark, and gets plain values."""
