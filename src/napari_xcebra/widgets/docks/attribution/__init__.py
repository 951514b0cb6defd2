"""The Attribution dock: paint, rank, threshold and export scores."""
