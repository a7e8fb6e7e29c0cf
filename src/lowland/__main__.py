"""``python -m lowland``."""

import sys

from lowland.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
