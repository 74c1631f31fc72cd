"""usage: native_stage.py PROGRAM ARGUMENT...

Writes images as `docker save` does into a directory, which AGX_IMAGES names, and executes PROGRAM.
Run it with docker_box.py --no-engine.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "py"))
sys.dont_write_bytecode = True

from agxtest import images  # noqa: E402 (the path comes first)


def main():
    directory = Path(os.environ["AGX_BOX"]) / "images"
    directory.mkdir()
    (directory / "busybox.tar").write_bytes(images.archive("busybox"))
    os.environ["AGX_IMAGES"] = str(directory)
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
