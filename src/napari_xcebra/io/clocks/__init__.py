"""Behaviour brought to the clock of the imaging: by times, triggers and trials."""
