"""Reads MATLAB files of both kinds as plain numbers."""
