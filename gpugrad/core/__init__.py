"""What a tensor is: arrays, devices, dtypes, settings and Variables. No mathematics."""
