"""A rank that fails: ``mpiexec -n 3 python fault.py FAULT``; prints when it happened."""

import os
import signal
import sys
import time

import numpy as np

import gpugrad as gg

_, fault = sys.argv
world = gg.distributed.init(timeout=2)
x = np.ones(1 << 16, np.float32)
for k in range(20):
    if k == 5 and world.rank == world.size - 1:
        print(f"FAULT {time.time():.3f}", flush=True)
        if fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "raises":
            raise ValueError("a bad batch")
        elif fault == "leaves":
            sys.exit(0)
        elif fault == "sleeps":
            time.sleep(60)
        elif fault == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif fault == "other":
            gg.distributed.all_gather(x)
    gg.distributed.all_reduce(x)
