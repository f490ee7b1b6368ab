"""``python -m proxlearn``: the command line."""

import sys

from proxlearn.cli import main

if __name__ == "__main__":
    sys.exit(main())
