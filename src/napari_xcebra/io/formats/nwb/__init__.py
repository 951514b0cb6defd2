"""NWB: finds objects by their type, and writes recordings and decisions."""
