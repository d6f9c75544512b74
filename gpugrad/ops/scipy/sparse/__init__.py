"""Records of sparse matrices: products on a pattern, and solutions of systems."""
