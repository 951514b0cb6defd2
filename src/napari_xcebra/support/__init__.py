"""Logs, diagnostics and what may leave this computer."""
