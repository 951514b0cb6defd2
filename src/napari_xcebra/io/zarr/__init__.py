"""Reads zarr folders, versions 2 and 3, without leaving them or trusting what they say."""
