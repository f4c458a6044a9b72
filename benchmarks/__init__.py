"""Scripts that fit the numbers Citewell ships, measure its answers and measure its speed."""
