"""ImageJ: reads ROIs and writes outlines of accepted cells."""
