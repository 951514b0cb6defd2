"""All traces at once: small enough to draw, and cells sorted by likeness."""
