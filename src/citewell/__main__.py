"""`python -m citewell` is `citewell`."""

from citewell.cli import main

main(prog_name="citewell")
