"""What the papers measured, measured with this package: see `benchmarks/paper.py`."""
