"""The encoder, its Jacobian and the inverse of that."""
