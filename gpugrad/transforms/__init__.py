"""Functions of functions: `grad`, `jacobian`, `vmap`, custom derivatives."""
