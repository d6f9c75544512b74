"""Branches and loops: `cond`, `while_loop` and `scan`."""
