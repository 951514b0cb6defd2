"""What every test relies on."""

import os

# Before torch is imported anywhere, child processes included: with one thread the same seed gives
# the same numbers, and a busy machine does not make a step many times slower.
os.environ["OMP_NUM_THREADS"] = "1"

from hypothesis import settings

# The first call may import torch; how long an example takes says nothing about the code.
settings.register_profile("napari-xcebra", deadline=None)
settings.load_profile("napari-xcebra")
