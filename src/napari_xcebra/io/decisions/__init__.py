"""Writes decisions on cells back to their source and to other programs.

    decisions ──plan_output──▶ Plan ──write──▶ Written ──restore──▶ as it was before

A plan says what will be written where, and writes all of it or nothing. What it replaces is kept
beside it, and one call puts it back.
"""
