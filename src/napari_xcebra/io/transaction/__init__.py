"""Plans, replaces and restores several files together, whole or not at all."""
