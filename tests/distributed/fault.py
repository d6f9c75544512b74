"""A rank that fails: ``mpiexec -n 3 python fault.py FAULT RANK STEP FOLDER``; prints when."""

import os
import signal
import sys
import threading
import time

import numpy as np

import gpugrad as gg

_, fault, rank, at, folder = sys.argv
world = gg.distributed.init(timeout=2)
v = gg.Variable(np.zeros(50_000))
optimizer = gg.distributed.Optimizer(gg.optim.SGD(1.0, 0.9), [v], shard="optimizer")
saves = gg.train.Checkpoints(folder, v=v, optimizer=optimizer)
x = np.ones(1 << 16, np.float32)


def now():
    print(f"FAULT {time.time():.3f}", flush=True)


def kill():
    now()
    os.kill(os.getpid(), signal.SIGKILL)


for k in range(30):
    if k == int(at) and world.rank == int(rank):
        if fault == "killed":
            threading.Timer(0.03 * (k % 3), kill).start()  # perhaps while it saves
        elif fault == "raises":
            now()
            raise ValueError("a bad batch")
        elif fault == "leaves":
            now()
            sys.exit(0)
        elif fault == "sleeps":
            now()
            time.sleep(60)
        elif fault == "stopped":
            now()
            os.kill(os.getpid(), signal.SIGSTOP)
        elif fault == "other":
            now()
            gg.distributed.all_gather(x)
        elif fault == "shape":
            now()
            gg.distributed.all_reduce(x[:100])
    optimizer.apply_gradients([(gg.ones(v.shape, dtype="float64"), v)])
    saves.save(k + 1)
    gg.distributed.all_reduce(x)
