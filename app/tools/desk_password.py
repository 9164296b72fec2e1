"""Ask for the desk's new password twice and print its hash, for SIZING_DESK_PASSWORD_HASH."""

import getpass
import sys
from typing import Final

from app.quotes.desk_login import hash_of

MIN_LENGTH: Final = 12


def problem_with(password: str, repeated: str) -> str | None:
    """Return what is wrong with a new password."""
    if len(password) < MIN_LENGTH:
        return f"The password has {len(password)} characters; it needs {MIN_LENGTH}."
    if password != repeated:
        return "The two passwords differ."
    return None


def main() -> int:
    """Ask, check, print; return the exit status."""
    try:
        password = getpass.getpass("New password for /desk: ")
        problem = problem_with(password, getpass.getpass("Once more: "))
    except EOFError:
        password, problem = "", "Nothing was typed. Run this in a terminal."
    if problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"SIZING_DESK_PASSWORD_HASH='{hash_of(password)}'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
