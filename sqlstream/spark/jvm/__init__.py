"""The JVM and the session: found, launched, asked, stopped."""
