"""What SciPy's modules need beside the other ops, one file or folder for each module."""
