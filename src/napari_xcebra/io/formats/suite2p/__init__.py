"""suite2p: reads and writes its folders."""
