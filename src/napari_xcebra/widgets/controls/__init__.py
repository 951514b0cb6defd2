"""Small widgets that know nothing of recordings."""
