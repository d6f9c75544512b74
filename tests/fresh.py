"""Python programs in a process of their own."""

import os
import subprocess
import sys


def output_of(*command, **environment):
    """The output of Python with these arguments and more variables; it has to succeed."""
    command = [sys.executable, *map(str, command)]
    env = os.environ | environment
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout
