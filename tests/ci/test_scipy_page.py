"""The page of SciPy's names is what its script prints."""

import runpy
import warnings
from pathlib import Path

import pytest
import scipy

HOME = Path(__file__).parents[2]


def test_page_of_scipys_names_is_fresh():
    """If this fails, run: ci/scipy_page > docs/scipy_names.md"""
    page = (HOME / "docs" / "scipy_names.md").read_text()
    if f"SciPy {scipy.__version__}'s" not in page:
        pytest.skip(f"the page is of another SciPy than {scipy.__version__}, with other names")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh = runpy.run_path(str(HOME / "ci" / "scipy_page"))["page"]()
    assert fresh == page
