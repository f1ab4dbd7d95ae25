"""``python -m fairlane``: the command line."""

import sys

from fairlane.cli import main

sys.exit(main())
