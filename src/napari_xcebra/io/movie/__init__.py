"""Finds and opens movies: one module a format, path → Movie.

    path ──suite2p, tiff, hdf5, zarr …──▶ Movie ──fitting──▶ Movie on the clock of a recording

A format is a module that `opening.FORMATS` names. It defines `NAME`, `sniff(path) -> bool`, which
looks at names and first bytes and never raises, and `load(path, like) -> Movie`, which raises one
`InputError` for a file it cannot use. Frames stay on disk.
"""
