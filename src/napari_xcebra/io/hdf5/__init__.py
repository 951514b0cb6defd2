"""Reads HDF5 files without leaving the file or trusting its headers."""
