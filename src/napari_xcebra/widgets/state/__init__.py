"""What the docks of a viewer share, without Qt."""
