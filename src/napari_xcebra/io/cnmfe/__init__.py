"""CNMF-E: reads its MATLAB structs."""
