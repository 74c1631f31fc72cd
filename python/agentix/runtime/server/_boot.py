"""The worker's entry point when started by file: `python3 -I .../server/_boot.py`.

Puts this package's own directory on the path, whatever the interpreter has installed.
"""

import os
import sys

root = os.path.abspath(__file__)
for _ in range(4):
    root = os.path.dirname(root)
if root not in sys.path:
    sys.path.insert(0, root)

from agentix.runtime.server.worker import main  # noqa: E402

main()
