"""The Cells dock: traces, tuning and embedding of selected cells."""
