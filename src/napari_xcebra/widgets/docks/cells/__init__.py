"""The Cells dock: traces, tuning, responses to events and embedding, of some cells or all."""
