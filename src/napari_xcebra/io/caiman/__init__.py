"""CaImAn: reads its HDF5 files and writes its component indices."""
