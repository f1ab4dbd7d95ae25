"""``python -m fairlane``: the command line."""

from fairlane.cli import main

main()
