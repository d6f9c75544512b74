"""cuRAND: nothing of it exists; gpugrad has its own random numbers."""

from gpugrad.testing.cuda.driver.libraries import Library

LIBRARY = Library("libcurand.so.10", failed=999, missing=102)
