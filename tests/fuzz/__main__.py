"""The command: python -m fuzz --help."""

import sys

from fuzz.command import main  # a module of its own, which worker processes can import

if __name__ == "__main__":
    sys.exit(main())
