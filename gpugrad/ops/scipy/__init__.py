"""Records that SciPy's namespaces need beside the other ops: one file or folder for a namespace."""
