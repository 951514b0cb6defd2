"""Ways to break what the program promises about files, a family of trials in each module."""
