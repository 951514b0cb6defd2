"""Movies of what was imaged, and videos of the animal: frames that stay on disk."""
