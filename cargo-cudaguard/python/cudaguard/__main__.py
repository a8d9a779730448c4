"""`python -m cudaguard`: runs the command; `--cmakedir` and `--includedir` print directories of this package."""

import os
import sys

from . import CommandError, cmake_dir, command, include_dir


def main() -> None:
    """Replaces this process by the command, or prints a directory."""
    arguments = sys.argv[1:]
    directories = {"--cmakedir": cmake_dir, "--includedir": include_dir}
    if len(arguments) == 1 and arguments[0] in directories:
        print(directories[arguments[0]]())
        return
    try:
        program = command()
    except CommandError as error:
        sys.exit("error: %s" % error)
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    main()
