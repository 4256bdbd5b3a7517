"""`python -m spawnscope_fleet` is the program `spawnscope-fleet`."""

from .cli import main

main()
