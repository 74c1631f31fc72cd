"""usage: python3 -I late_python.py DIRECTORY OPTION... PROGRAM: runs the program as python3 would.

It waits first while DIRECTORY/hold exists, and reports that with an empty file DIRECTORY/waits-PID.
"""

import os
import runpy
import sys
import time

directory, program = sys.argv[1], sys.argv[-1]
if os.path.exists(f"{directory}/hold"):
    open(f"{directory}/waits-{os.getpid()}", "w").close()
while os.path.exists(f"{directory}/hold"):
    time.sleep(0.005)
runpy.run_path(program, run_name="__main__")
