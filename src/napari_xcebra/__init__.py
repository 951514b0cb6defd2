"""Train xCEBRA on imaged cells and see what each cell carries."""
