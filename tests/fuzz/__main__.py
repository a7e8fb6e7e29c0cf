"""``python tests/fuzz``: run the fuzzer for some minutes, or repeat one case."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `import fuzz`
    from fuzz.program import main

    sys.exit(main())
