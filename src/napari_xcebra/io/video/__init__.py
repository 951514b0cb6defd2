"""Opens videos of the animal and reads their frames, with PyAV (the extra `video`)."""
