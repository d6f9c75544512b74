"""Imported before pytest starts: fixed random numbers, where a suite's own conftest cannot run."""

import random

import numpy as np

random.seed(42)
np.random.seed(42)
