"""`python -m mastra_rx`: the command line."""

from .cli import main

main()
