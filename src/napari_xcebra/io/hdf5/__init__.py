"""HDF5 files, read without leaving the file or believing its headers."""
