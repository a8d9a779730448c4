"""`python -m cudaguard`: the command, and where its CMake package is."""

import os
import sys

from . import Unusable, cmake_folder, command


def main() -> None:
    """Replaces this process by the command; `--cmakedir` prints where its CMake package is."""
    arguments = sys.argv[1:]
    if arguments == ["--cmakedir"]:
        print(cmake_folder())
        return
    try:
        program = command()
    except Unusable as error:
        sys.exit("error: %s" % error)
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    main()
