"""`python -m ulak`, for where the command is not on the path."""

from __future__ import annotations

from ulak.cli import main

if __name__ == "__main__":
    main()
