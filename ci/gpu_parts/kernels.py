"""Loads every kernel of gpugrad/kernels on the device: its registers, spills and largest block.

    python ci/gpu_parts/kernels.py RECORDS [--processes 12] [--only TEXT]

The driver may assemble a kernel otherwise than NVRTC's report says: this is what it has loaded.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib
import multiprocessing
import os
import pkgutil
import sys
import time
from concurrent.futures.process import BrokenProcessPool

import records

import gpugrad.kernels
from gpugrad.kernels.runtime.launch import OPTIONS, architecture, full_source


def instances() -> list[tuple[str, str]]:
    """(source, kernel) of all kernels by hand that run on this device."""
    listed: list[tuple[str, str]] = []
    here = architecture()
    packages = pkgutil.walk_packages(gpugrad.kernels.__path__, "gpugrad.kernels.")
    for module in (importlib.import_module(info.name) for info in packages):
        only = getattr(module, "ARCHITECTURES", {})
        listed += [i for i in getattr(module, "INSTANCES", ()) if here in only.get(i[1], {here})]
    return listed


def load(path: str, kernels: list[tuple[str, str]]) -> None:
    """Compile and load some kernels; record what the driver says about each."""
    import cupy

    for source, name in kernels:
        try:
            module = cupy.RawModule(
                code=full_source(source), options=OPTIONS, name_expressions=(name,)
            )
            about = module.get_function(name).attributes
            record = {
                "registers": about["num_regs"], "spilled": about["local_size_bytes"],
                "threads": about["max_threads_per_block"], "shared": about["shared_size_bytes"],
            }  # fmt: skip
        except Exception as error:
            record = {"why": f"{type(error).__name__}: {error}"[:300]}
        records.write(path, "kernels", kernel=[source, name], **record)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records")
    parser.add_argument("--processes", type=int, default=min(14, os.cpu_count() or 1))
    parser.add_argument("--only", default="", help="part of a kernel's name")
    args = parser.parse_args()
    done = {tuple(r["kernel"]) for r in records.read(args.records, "kernels")}
    jobs = [k for k in instances() if args.only in k[1] and k not in done]
    start, context = time.monotonic(), multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(args.processes, context) as pool:
        chunks = [jobs[i :: 8 * args.processes] for i in range(8 * args.processes)]
        futures = [pool.submit(load, args.records, chunk) for chunk in chunks if chunk]
        for future in futures:
            try:
                future.result()
            except BrokenProcessPool as error:  # a kernel crashed the compiler
                print(f"a process ended: {error}")
    found = records.read(args.records, "kernels")
    bad = [r for r in found if r.get("why") or r.get("spilled")]
    for r in bad:
        print(" ", r["kernel"], r.get("why") or f"{r['spilled']} bytes of local memory")
    print(f"{len(found)} kernels in {time.monotonic() - start:.0f} s, {len(bad)} fail or spill")
    return 1 if bad or len(found) < len(jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
