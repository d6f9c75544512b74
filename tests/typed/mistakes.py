"""A program with a mistake on each line that says so; type checkers must find these and no others.

It is never run: tests/test_types.py gives it to mypy and pyright.
"""

import gpugrad as gg

x = gg.ones((2, 3))
layer = gg.nn.Dense(3, 2)
optimizer = gg.optim.Adam(0.001)

gg.tanh(x, x)  # mistake: an extra argument
gg.sum(x, axes=0)  # mistake: axis
gg.softmaxx(x)  # mistake: softmax
gg.exp("1.0")  # mistake: text for an array
x.reshapee((3, 2))  # mistake: reshape
layer.summry()  # mistake: summary
optimizer.aply_gradients([])  # mistake: apply_gradients
gg.nn.MaxPool2d(2, strides=2)  # mistake: stride
gg.nn.ReLU().fweeze()  # mistake: freeze
gg.linalg.norm(x, axes=0)  # mistake: axis
gg.random.normal((2,), std=1.0)  # mistake: stddev
gg.random.normall((2,))  # mistake: normal
gg.numpy.summ(x)  # mistake: sum
gg.scipy.stats.norrm.pdf(0.0)  # mistake: norm
gg.function(lambda y: y * y).lowr(x)  # mistake: lower
