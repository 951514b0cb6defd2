"""The training run: its start, steps, λ, end, checkpoints and devices."""
