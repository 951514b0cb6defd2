"""Inscopix: reads its tables."""
