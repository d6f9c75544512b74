"""Loads every kernel of gpugrad/kernels on the device: its registers, spills and largest block.

    python ci/gpu_parts/kernels.py RECORDS [--processes 12] [--only TEXT]

The driver may assemble a kernel otherwise than NVRTC's report says: this is what it has loaded.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Any

import workers

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


def resources(kernel: Any) -> dict[str, Any]:
    """What the driver says about a loaded kernel."""
    about = kernel.attributes
    spilled = about["local_size_bytes"]
    return {
        "registers": about["num_regs"], "spilled": spilled,
        "threads": about["max_threads_per_block"], "shared": about["shared_size_bytes"],
        **({"why": f"{spilled} bytes of local memory"} if spilled else {}),
    }  # fmt: skip


def load(instance: tuple[str, str]) -> dict[str, Any]:
    """Compile and load a kernel."""
    import cupy

    source, name = instance
    module = cupy.RawModule(code=full_source(source), options=OPTIONS, name_expressions=(name,))
    return resources(module.get_function(name))


def main() -> int:
    parser = workers.parser(__doc__, processes=14, seconds=80, slow=60, hung=75)
    parser.add_argument("--only", default="", help="part of a kernel's name")
    args = parser.parse_args()
    jobs = [i for i in instances() if args.only in i[1]]
    return workers.run(args, "kernels", jobs[:8] if args.small else jobs, load)


if __name__ == "__main__":
    sys.exit(main())
