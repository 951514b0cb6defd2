"""The Video dock."""
