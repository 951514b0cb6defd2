"""Prepares what is learned from: inputs, labels, positive pairs and the frames to use."""
