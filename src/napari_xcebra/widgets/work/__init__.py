"""Work in the background, followed from the window."""
