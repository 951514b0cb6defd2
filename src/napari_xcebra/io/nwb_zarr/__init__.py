"""NWB files in zarr folders, as hdmf-zarr writes them."""
