"""Files by what they are made of: arrays, HDF5, MATLAB, zarr, TIFF, tables, videos, pickles."""
