"""The array API and NumPy's protocols: operators and methods of Tensor."""
