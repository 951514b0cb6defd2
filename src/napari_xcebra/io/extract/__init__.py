"""EXTRACT: reads its MATLAB structs."""
