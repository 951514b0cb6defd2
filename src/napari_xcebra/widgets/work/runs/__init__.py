"""What is trained and computed for runs, in the background."""
