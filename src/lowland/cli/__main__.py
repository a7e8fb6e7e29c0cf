"""``python -m lowland.cli``."""

import sys

from lowland.cli import main

if __name__ == "__main__":
    sys.exit(main())
