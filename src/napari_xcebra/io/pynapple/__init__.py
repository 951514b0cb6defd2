"""Files of pynapple (.npz)."""
