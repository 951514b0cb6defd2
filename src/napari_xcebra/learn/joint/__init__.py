"""One embedding for several sessions or animals, each with cells of its own."""
