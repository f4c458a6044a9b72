"""Scripts that fit the numbers in `src/citewell/data/`."""
