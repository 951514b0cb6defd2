"""Brings behaviour to the imaging clock, by times, triggers and trials."""
