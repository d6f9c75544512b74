"""Build plans with the real cuDNN as for an H100, on a machine without a GPU or driver.

python tests/kernels/cudnn_driver.py FOLDER FILE

Reads a list of (function of kernels.libraries.cudnn, problem, notes) as a pickle from FILE, and
prints for each the bytes of its plan's workspace, or why there is no plan, as JSON. FOLDER is for
two libraries that g++ builds there as stand-ins for the driver and the runtime: cuDNN compiles
its kernels but has nothing to load them into.
"""

import ctypes
import importlib
import json
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

H100 = {
    "deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900, "driverVer": 12080, "cudaDeviceId": 0,
    "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "warpSize": 32,
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
    "regsPerBlock": 65536, "multiProcessorCount": 132, "smCountOrigin": 0,
    "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
    "reservedSharedMemoryPerBlock": 1024, "oversizedSharedMemoryPerBlock": 0,
    "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048, "totalGlobalMem": 85029158912, "smClockRateKHz": 1980000,
    "memClockRateKHz": 2619000, "memoryBusWidth": 5120, "l2CacheSize": 52428800,
}  # fmt: skip
"""Device properties in the form that cuDNN serializes."""

_DONE = """cuCtxGetCurrent cuCtxGetLimit cuCtxPopCurrent cuCtxPushCurrent cuDeviceGet
cuDeviceGetCount cuDriverGetVersion cuGetErrorName cuGetErrorString cuKernelGetAttribute
cuKernelSetAttribute cuLaunchCooperativeKernel cuLaunchKernel cuLaunchKernelEx cuLibraryUnload
cuLinkAddData cuLinkComplete cuLinkDestroy cuModuleUnload cuOccupancyMaxPotentialClusterSize
cuStreamGetCtx cuTensorMapEncodeIm2col cuTensorMapEncodeTiled"""
_MAKE = """cuKernelGetFunction cuLibraryGetKernel cuLibraryLoadData cuLibraryLoadFromFile
cuModuleGetFunction cuModuleLoadData"""

DRIVER = "\n".join((
    'extern "C" {', "static char thing[64];",
    *(f"int {n}() {{ return 0; }}" for n in _DONE.split()),
    *(f"int {n}(void** made) {{ *made = thing; return 0; }}" for n in _MAKE.split()),
    "int cuLinkCreate(int, void*, void*, void** made) { *made = thing; return 0; }", "}",
))  # fmt: skip

RUNTIME = """extern "C" {
int cudaGetDevice(int* device) { *device = 0; return 0; }
int cudaDeviceGetAttribute(int* value, int which, int) {
    *value = which == 75 ? 9 : 0;  // cudaDevAttrComputeCapabilityMajor, of 9.0
    return 0;
}
int cudaGetLastError() { return 0; }
const char* cudaGetErrorString(int) { return ""; }
}"""


def compiled(folder: Path, name: str, source: str) -> str:
    """Compile a library and return its path."""
    path = folder / name
    command = ["g++", "-w", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-xc++", "-", "-o", path]
    subprocess.run(command, input=source, text=True, check=True)
    return str(path)


def library(folder: Path) -> Any:
    """The module ``cudnn``, loaded after stand-ins for the driver and the runtime, and NVRTC."""
    ctypes.CDLL(compiled(folder, "libcuda.so.1", DRIVER), ctypes.RTLD_GLOBAL)
    os.environ["CUDNN_FRONTEND_CUDART_LIB_NAME"] = compiled(folder, "libcudart.so.12", RUNTIME)
    from gpugrad.testing.cuda import nvrtc

    nvrtc._library()  # loads NVRTC under the name that cuDNN looks up
    logging.disable()
    return importlib.import_module("cudnn")


def main() -> None:
    cu = library(Path(sys.argv[1]))
    device = cu.create_device_properties(json.dumps(H100))
    from gpugrad.kernels.libraries import cudnn

    results: list[Any] = []
    for name, problem, notes in pickle.loads(Path(sys.argv[2]).read_bytes()):
        try:
            plan = cudnn.Plan(getattr(cudnn, name), problem, notes, device_property=device)
        except cudnn.no_plan_errors() as error:
            results.append(str(error))
        else:
            results.append(plan.size)
    print("RESULTS", json.dumps(results))


if __name__ == "__main__":
    main()
