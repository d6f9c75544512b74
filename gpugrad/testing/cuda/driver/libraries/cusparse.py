"""cuSPARSE: nothing of it exists but handles, which CuPy creates beside others."""

from gpugrad.testing.cuda.driver.libraries import Library, register_handles

LIBRARY = Library("libcusparse.so.12", failed=7, missing=10)
register_handles(LIBRARY, "cusparse")
