"""Values, dtypes and shapes of gpugrad.compat.tf are TensorFlow's, over a table of calls.

tests/golden/tensorflow.txt holds what TensorFlow returned; the test marked peers compares it with
the installed TensorFlow, and `python tests/compat/test_tf_values.py` writes it again.
"""

# ruff: noqa: E501  # a table
from __future__ import annotations

import importlib
import inspect
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "tensorflow.txt"

CALLS = """
constant([1, 2, 3])  constant(2.5)  constant(1 + 2j)  constant([[True], [False]])  constant(7, shape=[2, 2])
constant(P)  convert_to_tensor([1.5, 2])  cast(A, "int32")  cast([1, 2], "float64")  saturate_cast([300.0, -5.0], "uint8")
identity(A)  zeros([2, 3])  ones([2], "int32")  zeros_like(B)  ones_like(K)  fill([2, 2], 3)  eye(3)  eye(2, 3, [2])
range(5)  range(1, 10, 3)  range(0.0, 1.0, 0.25)  linspace(0.0, 1.0, 5)  linspace([0.0, 1.0], [2.0, 4.0], 3)
shape(B)  size(B)  rank(B)  reshape(B, [3, -1])  transpose(B)  transpose(C3, [2, 0, 1])  expand_dims(A, 0)  squeeze(ones([1, 3, 1]))
squeeze(ones([1, 3, 1]), [2])  concat([B, B], 0)  concat([B, B], axis=-1)  stack([A, A])  stack([A, A], axis=1)  unstack(B, axis=1)
split(K, 2)  split(B, [1, 2], axis=1)  split(range(6), [2, -1, 1])  tile(A, [2])  tile(B, [1, 2])  repeat([1, 2, 3], 2)
repeat(B, [1, 2], axis=0)  broadcast_to(A, [2, 3])  pad(B, [[1, 0], [0, 2]])  pad(B, [[1, 1], [1, 1]], "REFLECT")
pad(B, [[0, 0], [1, 1]], constant_values=9.0)  reverse(B, [1])  roll(A, 1, 0)  sort(A, direction="DESCENDING")  argsort(A)
searchsorted([1.0, 3.0, 5.0], [0.0, 3.0, 4.0])  searchsorted([1.0, 3.0, 5.0], [3.0], side="right")  unique([4, 2, 4, 1])
where([True, False, True])  where(A > 1, A, 0.0)  where([True, False], [1, 2], [3, 4])  clip_by_value(A, 0.0, 1.0)
one_hot([0, 2], 3)  one_hot([0, 2], 3, on_value=5, off_value=1)  one_hot([[0], [2]], 3, axis=0)
gather(B, [1, 0, 1])  gather(B, [2, 0], axis=1)  gather(C3, [[0, 1], [2, 0]], axis=2, batch_dims=1)  gather(C3, [0, 1], batch_dims=1)
gather_nd(B, [[0, 1], [1, 2]])  gather_nd(C3, [[0, 1]])  gather_nd(C3, [[0], [1]], batch_dims=1)  boolean_mask(A, [True, False, True])
slice(B, [0, 1], [2, -1])  strided_slice(A, [0], [3], [2])  scatter_nd([[1], [1], [3]], [5.0, 6.0, 7.0], [5])
tensor_scatter_nd_add(A, [[0], [0]], [1.0, 2.0])  tensor_scatter_nd_update(A, [[2]], [9.0])  tensor_scatter_nd_sub(A, [[1]], [1.0])
tensor_scatter_nd_max(A, [[0]], [9.0])  tensor_scatter_nd_min(A, [[0]], [-9.0])  sequence_mask([1, 3])  sequence_mask([1, 3], 4, "int32")
meshgrid([1, 2], [3, 4, 5])  ensure_shape(B, [2, None])  complex(A, A)  boolean_mask(B, [[True, False, True], [False, True, False]])
add([1, 2], [3, 4])  add(A, 1)  subtract(P, 1.0)  multiply(A, 2)  divide([1, 2], 2)  truediv(K, 3)  floor(A)  math.floordiv(K, 3)  math.floormod(K, 3)
truncatemod(K, 3)  pow(A, 2.0)  pow(2, 3)  maximum(A, 1.0)  minimum(K, 3)  equal(A, 1.0)  less(K, 3)  logical_and([True], [False])
math.squared_difference(A, 1.0)  math.divide_no_nan(A, 0.0)  math.multiply_no_nan(A, 0.0)  math.xlogy(0.0, 0.0)  math.xdivy(0.0, 0.0)
abs(A)  exp(A)  math.log(2.0)  math.log1p(abs(A))  sqrt(2.0)  square(K)  math.rsqrt(4.0)  sigmoid(A)  tanh(A)  math.erf(A)  math.lgamma(3.5)  math.digamma(2.5)
math.softplus(A)  math.softsign(A)  math.ceil(A)  round([0.5, 1.5, 2.5])  sign(A)  negative(K)  math.reciprocal(4.0)  atan2(1.0, 2.0)
math.igamma(2.0, 3.0)  math.igammac(2.0, 3.0)  math.betainc(2.0, 3.0, 0.4)  math.zeta(3.0, 1.0)  math.polygamma(1.0, 2.0)  math.erfinv(0.3)  math.bessel_i0e(1.0)
math.real(Z)  math.imag(Z)  math.conj(Z)  math.angle(Z)  abs(Z)  math.is_nan([math_nan, 1.0])  math.is_finite([math_inf, 1.0])  add_n([A, A, A])
reduce_sum(B)  reduce_sum(B, axis=1)  reduce_sum(K)  reduce_sum(B, [0, 1], keepdims=True)  reduce_mean(B, 0)  reduce_mean(K)  reduce_mean([1, 2])
reduce_max(B, -1)  reduce_min(K)  reduce_prod(K)  reduce_any([True, False])  reduce_all([[True, False]], axis=0)  reduce_logsumexp(B, axis=1)
math.reduce_std(B)  math.reduce_variance(B, 1)  math.reduce_euclidean_norm(B, 1)  math.count_nonzero([0, 1, 2])
argmax(B)  argmax(B, axis=1)  argmin(B, 1)  argmax(A, output_type="int32")  cumsum(A)  cumsum(A, exclusive=True)  cumsum(K, reverse=True)
cumsum(A, exclusive=True, reverse=True)  math.cumprod(A)  math.cumprod(A, exclusive=True)  math.cumulative_logsumexp(A)
math.top_k(A, 2)  math.in_top_k([0, 1], B, 2)  math.l2_normalize(B, axis=1)  math.segment_sum(B, [0, 0])  math.segment_mean(A, [0, 0, 1])
math.unsorted_segment_sum(A, [2, 0, 2], 3)  math.unsorted_segment_max(A, [1, 0, 1], 2)  math.bincount([1, 1, 3])  math.bincount([1, 1, 3], minlength=6)
math.confusion_matrix([0, 1, 1], [0, 1, 0])  math.polyval([1.0, 2.0, 3.0], 2.0)
matmul(B, B, transpose_b=True)  matmul(B, B, transpose_a=True)  linalg.matvec(B, A)  tensordot(B, B, [[1], [1]])  einsum("ij,kj->ik", B, B)
linalg.diag(A)  linalg.diag_part(S)  linalg.set_diag(S, A)  linalg.band_part(S, 1, 0)  linalg.band_part(S, -1, 0)  linalg.tensor_diag(A)  linalg.tensor_diag_part(S)
linalg.trace(S)  linalg.det(S)  linalg.inv(S)  linalg.solve(S, T)  linalg.cholesky(S)  linalg.cholesky_solve(linalg.cholesky(S), T)
linalg.triangular_solve(linalg.cholesky(S), T)  linalg.lstsq(transpose(B), T)  linalg.svd(B, compute_uv=False)  linalg.eigvalsh(S)  linalg.expm(S)  linalg.slogdet(S)  linalg.logdet(S)
linalg.adjoint(Z2)  linalg.cross(A, [1.0, 0.0, 0.0])  linalg.norm(B)  linalg.norm(B, axis=1)  linalg.norm(B, 1, axis=0)  norm(B, ord=math_inf)  linalg.norm(B, axis=[0, 1])
linalg.global_norm([A, B])  linalg.matrix_rank(S)  linalg.pinv(B)  linalg.normalize(A)  linalg.sqrtm(S)  linalg.lu(S)
clip_by_norm(A, 1.0)  clip_by_norm(B, 1.0, axes=[1])  clip_by_global_norm([A, B], 1.0)
nn.relu(A)  nn.relu6(A)  nn.elu(A)  nn.selu(A)  nn.leaky_relu(A)  nn.gelu(A)  nn.gelu(A, approximate=True)  nn.silu(A)  nn.crelu(A)  nn.softmax(B)  nn.softmax(B, axis=0)  nn.log_softmax(B)
nn.bias_add(B, A)  nn.moments(B, [0])  nn.moments(B, axes=[0, 1], keepdims=True)  nn.batch_normalization(B, 0.5, 2.0, 1.0, 3.0, 1e-3)  nn.l2_loss(A)
nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 2], logits=B)  nn.softmax_cross_entropy_with_logits(labels=SB, logits=B)
nn.sigmoid_cross_entropy_with_logits(labels=SB, logits=B)  nn.weighted_cross_entropy_with_logits(SB, B, 2.0)  nn.log_poisson_loss(SB, B)  nn.log_poisson_loss(SB, B, True)
nn.embedding_lookup(B, [1, 0])  nn.conv2d(I, W, 1, "VALID")  nn.conv2d(I, W, 2, "SAME")  nn.conv2d(I, W, [1, 2, 1, 1], "SAME")  nn.conv2d(I, W, 1, [[0, 0], [1, 2], [0, 1], [0, 0]])
nn.conv2d(I, W, 1, "SAME", dilations=2)  nn.conv1d(I[0], W[0], 1, "SAME")  nn.conv1d(I[0], W[0], 2, "VALID")  nn.conv3d(I[None], W[None], [1, 1, 1, 1, 1], "SAME")
nn.depthwise_conv2d(I, W, [1, 1, 1, 1], "SAME")  nn.conv2d_transpose(I, W2, [2, 10, 8, 3], 2)  nn.conv2d_transpose(I, W2, [2, 6, 5, 3], 1, "VALID")
nn.conv2d_transpose(I, W2, [2, 9, 7, 3], 2, "SAME")  nn.conv1d_transpose(I[0], W2[0], [5, 8, 3], 2)
nn.max_pool2d(I, 2, 2, "SAME")  nn.max_pool2d(I, [2, 3], 1, "VALID")  nn.max_pool(I, 3, 2, "SAME")  nn.avg_pool2d(I, 2, 2, "SAME")  nn.avg_pool2d(I, 3, 2, "VALID")
nn.max_pool1d(I[0], 2, 2, "SAME")  nn.avg_pool1d(I[0], 2, 2, "VALID")  nn.local_response_normalization(I, 1, 1.0, 0.5, 0.7)
map_fn(lambda r: r * 2, B)  scan(lambda a, x: a + x, A)  scan(lambda a, x: a + x, A, initializer=1.0)  foldl(lambda a, x: a * x, A)  foldr(lambda a, x: a - x, A)
scan(lambda a, x: a * x, A, reverse=True)  while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + 2.0), [0, 0.0])
case([(less(2, 1), lambda: 1), (less(1, 2), lambda: 2)], default=lambda: 3)  switch_case(constant(1), [lambda: 10, lambda: 20, lambda: 30])
numpy_function(lambda a: a * 2, [A], "float32")  TensorArray("float32", 3).unstack(A).write(1, 7.0).stack()
K + 1  K / 2  K // 2  2 - K  K ** 2  K % 4  1 / K  K * 2  A + 1  2 / A  A ** 2  A // 1  -K  abs(K)  sort(K)  argsort(K)  clip_by_value(K, 0, 3)  reduce_max(K)  math.cumprod(K)  where(K > 0, K, 0)
where([True, False], 1.5, 2.5)  stack([1, K[0]])  stack([1.5, A[0]])  concat([[1], K], 0)  math.top_k(K, 2)  math.bincount([1, 1, 2])  range(4) * 2  math.segment_sum(K, [0, 0, 1, 1])
math.segment_mean(K, [0, 0, 1, 1])  math.unsorted_segment_mean(K, [0, 0, 1, 1], 2)  K > 1  K == 5  math.count_nonzero(K)  sign(K)  reduce_mean([[1, 2], [4, 4]], 1)  tensordot(K, K, 1)
linalg.matvec([[1, 2], [3, 4]], [5, 6])  matmul([[1, 2]], [[3], [4]])  cast(K, "float32") / 2  cast(True, "int32")  constant([1, 2.5])  constant([True, False]) & [True, True]  fill([2], 1.5)
ones_like([1, 2])  zeros_like(2.5)  linspace(0, 1, 3)  range(3.0)  range(2, 8, 2, "float64")  math.argmax(K)  math.argmin(K, output_type="int32")  unique([2, 1, 2])  searchsorted([1, 3], [2])  shape(K)
size(A)  rank(A)  math.confusion_matrix([0, 1], [1, 1])  one_hot([1], 2)  sequence_mask([1, 2])  eye(2)  where([True, False])  math.ceil(2.5)  math.maximum(K, 3)  math.pow(2, [1, 2])  math.truediv(7, 2)
math.floordiv(7, 2)  math.mod(7, 3)  math.add(1, 2)  math.subtract(1.5, 1)  math.multiply(K, 2)  math.divide(7, 2)  divide(K, K)  reduce_prod([1.5, 2])  math.reduce_variance([1.0, 2.0])  math.abs(-3)
math.square(3)  math.sqrt(4.0)  math.accumulate_n([K, K])  math.squared_difference(K, 1)  broadcast_to(1, [2])  tile([1, 2], [2])  repeat(3, 2)  pad([1, 2], [[1, 0]])  gather([1, 2, 3], [0])
cumsum([1, 2])  math.real(1 + 2j)  math.angle(1.5)  cast(2.7, "int32")  cast(-2.7, "uint8")  bitcast(1.0, "int32")  saturate_cast(300, "int8")  nn.softmax([1.0, 2.0])  nn.relu(K)  nn.relu([-1, 2])
nn.l2_loss([1.0, 2.0])  math.is_nan(1.0)  math.logical_not(True)  linalg.diag([1, 2])  linalg.trace([[1, 2], [3, 4]])  linalg.norm([3.0, 4.0])  P * 2  tensor_scatter_nd_add([1, 2], [[0]], [5])
scatter_nd([[1]], [5], [3])  add_n([1, 2])  math.cumulative_logsumexp([1.0, 2.0])
math.scalar_mul(2.0, A)  math.reciprocal_no_nan([0.0, 2.0])  truncatediv([-7, 7], 2)  nn.zero_fraction([0.0, 1.0])  math.is_non_decreasing(A)
math.is_strictly_increasing([1, 2])  realdiv(A, 2.0)  nn.space_to_depth(I[:, :4], 2)  nn.depth_to_space(tile(I, [1, 1, 1, 2]), 2)
nn.separable_conv2d(I, W, ones([1, 1, 6, 2]), [1, 1, 1, 1], "SAME")  nn.atrous_conv2d(I, W, 2, "SAME")  linalg.eye(2)  linalg.l2_normalize(B, 1)
signal.fft(Z)  signal.ifft(Z)  signal.fft2d(Z2)  signal.rfft(A)
math.top_k(A, 2).indices  math.bincount([1, 2, 5, 1], maxlength=4)  math.bincount([1, 2, 1], weights=[1.0, 2.0, 3.0], maxlength=2)  math.bincount([[1, 2], [0, 0]], axis=-1)
math.bincount([1, 1, 2], binary_output=True)  math.bincount([1, 1], dtype="int64")  math.in_top_k([0, 1, 5], [[1.0, math_nan, 0.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], 2)
math.segment_max(A, [0, 2, 2])  math.segment_prod(A, [0, 2, 2])  math.unsorted_segment_max(A, [0, 2, 2], 4)  math.unsorted_segment_min(K, [0, 2, 2, 0], 4)  math.lbeta(abs(B))
linalg.diag_part(S, k=1)  linalg.diag_part(S, k=(-1, 0))  linalg.diag_part(B, k=(-1, 2), padding_value=9.0, align="LEFT_RIGHT")  linalg.diag(A, k=-1)
nn.conv2d_transpose(I, W2, [2, 5, 4, 3], 1, dilations=2)  signal.rfft(A, [6])  signal.irfft(Z, [4])  signal.rfft2d(B, [2, 4])
initializers.Constant(3)([2])  constant_initializer([1, 2, 3, 4])([2, 2])  zeros_initializer()([2], "float64")  initializers.Identity(3.0)([2, 3])
same(initializers.GlorotUniform(seed=3))  same(initializers.RandomNormal(seed=3))  same(initializers.Orthogonal(2.0, seed=3))  same(initializers.VarianceScaling(2.0, "fan_out", "uniform", seed=1))
elements(data.Dataset.range(4).map(lambda i: tf.ones([i], "int32")).padded_batch(2, padded_shapes=[5]))  elements(data.Dataset.range(4).map(lambda i: tf.ones([i])).padded_batch(2, [None], -1.0))
elements(data.Dataset.range(4).map(lambda i: (tf.ones([i], "int32"), tf.ones([2]))).padded_batch(2, ([None], [3]), (7, -1.0)))
while_loop(lambda i, a: i < 9, lambda i, a: [i + 1, a * 2.0], [0, 1.0], maximum_iterations=4)  while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.concat([a, [1.0]], 0)), (0, A), (TensorShape([]), TensorShape([None])))
nest.flatten({"b": 1, "a": (2, [3])})  nest.pack_sequence_as({"b": 0, "a": [0, 0]}, [1, 2, 3])["a"]  nest.map_structure(lambda a, b: a + b, [1, (2,)], [10, (20,)])[1]  nest.is_nested([1])
updated("scatter_add", tf.IndexedSlices([[1.0, 2.0, 3.0]], [1]))  updated("scatter_sub", tf.IndexedSlices(B, [1, 1]))  updated("scatter_max", tf.IndexedSlices(B, [1, 0]))  updated("scatter_min", tf.IndexedSlices(B, [1, 0]))
updated("scatter_update", tf.IndexedSlices(B, [1, 0]))  updated("scatter_nd_add", [[0, 1], [0, 1]], [5.0, 1.0])  updated("scatter_nd_sub", [[1]], [A])  updated("scatter_nd_update", [[0, 1]], [5.0])
Variable(B).gather_nd([[0, 1], [1, 2]])  Variable(B).sparse_read([1, 0])  atan2(y=A, x=2.0)  linalg.matrix_transpose(Z2, conjugate=True)  linalg.eigvalsh(tensor=S)  signal.rfft(input_tensor=A, fft_length=[2])  case([(constant(False), lambda: A), (constant(True), lambda: B)])  switch_case(constant(7), [lambda: A, lambda: B])
shape(random.stateless_categorical([[0.0, 1.0]], 5, [1, 2]))  steps(optimizers.SGD())  steps(optimizers.SGD(0.1, momentum=0.9))  steps(optimizers.SGD(0.1, momentum=0.9, nesterov=True))  steps(optimizers.SGD(0.1, weight_decay=0.1))  steps(optimizers.SGD(0.1, clipnorm=0.1))
steps(optimizers.Adam())  steps(optimizers.Adam(0.1, epsilon=0.1))  steps(optimizers.Adam(0.1, 0.5, 0.9, amsgrad=True))  steps(optimizers.Adam(0.1, weight_decay=0.1))  steps(optimizers.AdamW(0.1, 0.1, epsilon=0.1))
steps(optimizers.Adamax())  steps(optimizers.Adamax(0.1, epsilon=0.1))  steps(optimizers.Nadam())  steps(optimizers.Nadam(0.1, epsilon=0.1))  steps(optimizers.RMSprop(0.1))  steps(optimizers.RMSprop(0.1, 0.5, 0.9, 0.1, True))
steps(optimizers.Adagrad())  steps(optimizers.Adagrad(0.1, 0.5, 0.1))  steps(optimizers.Adadelta())  steps(optimizers.Adadelta(0.5, 0.9, 0.1))  steps(optimizers.Lion())  steps(optimizers.Lion(0.1, 0.5, 0.9, weight_decay=0.1))
steps(optimizers.Ftrl(0.1))  steps(optimizers.Ftrl(0.1, -0.3, 0.2, 0.01, 0.02, 0.1, 0.1))  steps(optimizers.SGD(0.1), constraint=nn.relu)
cast([1, 2], "float")  constant(1, "float")  zeros([1], "double")  eye(1, dtype="half")
"""  # fmt: skip


def steps_of(tf, optimizer, constraint=None) -> np.ndarray:
    """A Variable after four steps of an optimizer, with gradients of other sizes."""
    v = tf.Variable([[0.5, -1.0, 2.0], [0.1, 3.0, -0.2]], constraint=constraint)
    for i in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(v * (i + 1.0)) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    return v.numpy()


def inputs(tf) -> dict[str, object]:
    """The arguments of the table's calls, and every name of a TensorFlow."""
    rng = np.random.default_rng(0)
    f = lambda *shape: tf.constant(rng.normal(size=shape).astype("float32"))  # noqa: E731
    b = f(2, 3)
    root = f(3, 3)
    return {
        "A": tf.constant([0.5, 2.0, -1.5]), "B": b, "C3": f(2, 2, 3), "K": tf.constant([5, -3, 7, 2]),
        "P": np.array([1.0, 2.5]), "S": tf.matmul(root, root, transpose_b=True) + tf.eye(3),
        "T": f(3, 2), "Z": tf.constant([1 + 2j, -3j]), "Z2": tf.constant([[1 + 2j, -3j]]),
        "SB": tf.nn.softmax(b * 2), "I": f(2, 5, 4, 2), "W": f(3, 2, 2, 3), "W2": f(2, 2, 3, 2),
        "math_nan": math.nan, "math_inf": math.inf,
        "updated": lambda name, *args: (
            v := tf.Variable([[1.0, 0.5, -2.0], [0.1, 3.0, 0.0]]), getattr(v, name)(*args), v.numpy()
        )[2],
        "steps": lambda *args, **options: steps_of(tf, *args, **options),
        "same": lambda make: bool(np.all(make([4, 3]).numpy() == make([4, 3]).numpy())),
        "elements": lambda dataset: list(dataset.as_numpy_iterator()),
    }  # fmt: skip


class _Scope(dict):  # names of the table first, then of TensorFlow
    def __init__(self, tf) -> None:
        super().__init__(inputs(tf) | {"tf": tf})
        self._tf = tf

    def __missing__(self, name: str) -> object:
        return getattr(self._tf, name)


def calls() -> list[str]:
    return [call.strip() for line in CALLS.strip().splitlines() for call in line.split("  ")]


def digest(value: object) -> str:
    """The dtype, shape and two sums of a result, which tell of most differences."""
    if isinstance(value, (list, tuple)):
        return " | ".join(map(digest, value))
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    wide = array.astype("complex128" if array.dtype.kind == "c" else "float64").ravel()
    weights = np.cos(np.arange(wide.size))
    sums = [x for z in (wide.sum(), wide @ weights) for x in (np.real(z), np.imag(z))]
    return f"{array.dtype} {list(array.shape)} " + " ".join(f"{x:.5g}" for x in sums)


def matches(found: str, expected: str) -> bool:
    """Whether two digests agree up to rounding."""
    if len(found.split()) != len(expected.split()):
        return False
    for a, b in zip(found.split(), expected.split(), strict=True):
        try:
            x, y = float(a), float(b)
        except ValueError:
            if a != b:
                return False
            continue
        if not (x == y or abs(x - y) <= 2e-3 * max(1.0, abs(y)) or (x != x and y != y)):
            return False
    return True


def results(name: str) -> dict[str, str]:
    scope = _Scope(importlib.import_module(name))
    found = {}
    for call in calls():
        try:
            found[call] = digest(eval(call, {"__builtins__": {}, **scope}, scope))
        except Exception as error:
            found[call] = f"{type(error).__name__}: {str(error)[:80]!r}"
    return found


def golden() -> dict[str, str]:
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    return dict(line.split("  =  ", 1) for line in lines)


def different(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    return [
        f"{call}: {found[call]}, expected {expected.get(call)}"
        for call in found
        if not matches(found[call], expected.get(call, ""))
    ]


def test_calls_return_what_tensorflow_returns():
    assert not different(results("gpugrad.compat.tf"), golden())


@pytest.mark.peers
def test_the_golden_file_holds_what_tensorflow_returns():
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    assert not different(results("tensorflow"), golden())


_OWN = "DType Generator Dataset load_checkpoint no_gradient stop_gradient einsum gradients".split()  # noqa: SIM905
"""Names whose parameters are gpugrad's or TensorFlow 1's on purpose."""
_RENAMED = {"strides": "stride"}
"""TensorFlow's other names of parameters, which are understood, too."""


@pytest.mark.peers
@pytest.mark.parametrize("module", ["", *"math linalg nn random signal debugging nest".split()])  # noqa: SIM905
def test_parameters_stand_in_tensorflows_order(module):
    theirs: Any = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    ours: Any = importlib.import_module("gpugrad.compat.tf")
    theirs, ours = (getattr(m, module) if module else m for m in (theirs, ours))
    wrong = []
    for name in dir(theirs):
        a, b = getattr(theirs, name), getattr(ours, name, None)
        if name[0] == "_" or name in _OWN or not (inspect.isroutine(a) and callable(b)):
            continue
        known = [*inspect.signature(a).parameters]
        own = [
            p.name if p.name in known else _RENAMED.get(p.name, p.name)
            for p in inspect.signature(b).parameters.values()
            if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "name"
        ]
        if [p for p in known if p in own] != own:
            wrong.append(f"{name}: {own}, TensorFlow {known}")
    assert wrong == []


if __name__ == "__main__":
    module = sys.argv[1] if len(sys.argv) > 1 else "tensorflow"
    lines = [f"{call}  =  {text}" for call, text in results(module).items()]
    GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")
