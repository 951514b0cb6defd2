"""Finds and opens movies: path ──suite2p, tiff, zarr …──▶ Movie, on the clock of a recording.

A format is a module that `finding.FORMATS` names. It defines `MOVIE`, what it is called;
`sniff_movie(path) -> bool`, which looks at names and first bytes and never raises; and
`load_movie(path, like) -> Movie`, which raises one `InputError` for a file it cannot use. Frames
stay on disk.
"""
