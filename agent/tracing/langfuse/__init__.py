"""Langfuse: the only package that knows its client, and that of OpenTelemetry under it."""
