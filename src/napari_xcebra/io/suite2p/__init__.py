"""What a folder of suite2p holds."""
