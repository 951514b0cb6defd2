"""Minian: reads its folders of zarr arrays."""
