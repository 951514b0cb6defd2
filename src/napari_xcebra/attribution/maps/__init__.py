"""The maps: a score of every cell for every latent or factor, by each method."""
