"""Spark sessions: settings, JARs, class archives, types."""
