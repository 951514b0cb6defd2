"""MATLAB files of both kinds, read as plain numbers."""
