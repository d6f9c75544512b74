"""A Python number takes the place of a 0-d array, in every mode."""

import numpy as np
import pytest

import gpugrad as gg
from gpugrad.core import nest
from gpugrad.core.backend import BFLOAT16, SCALARS
from gpugrad.errors import DeviceError, DTypeError, GpugradError

# the length of their result depends on values
NOT_UNDER_VMAP = ("compress", "extract", "intersect1d", "setdiff1d", "setxor1d", "union1d")


def _calls_with_a_scalar(op):
    """(arguments, keywords, position) where an op takes a 0-d array at that position."""
    for i in range(len(op.arrays)):
        for args, keywords in op.samples(np.random.default_rng(0)):
            if i >= len(args) or not isinstance(args[i], np.ndarray) or not args[i].size:
                continue
            others = [a for k, a in enumerate(args) if k != i]
            if not any(isinstance(a, np.ndarray) for a in others):
                continue
            scalar = [*args[:i], np.asarray(args[i].flat[0]), *args[i + 1 :]]
            try:
                op.eager(*scalar, **keywords)
            except (GpugradError, ValueError, TypeError, IndexError):
                continue
            yield scalar, keywords, i
            if args[i].ndim:
                break


_CALLS = {
    f"{op.name}-{op.arrays[call[2]]}": (op, *call)
    for op in gg.OPS.values()
    if len(op.arrays) > 1 and not op.variadic and "<" not in op.home
    for call in _calls_with_a_scalar(op)
}

_SHAPES = "it combines the axes of its arrays"
_LABELS = "labels: a number beside a batch is a mistake"
_INTERNAL = "other ops call it, with arrays"
NEED_ARRAYS = {  # a number may raise an error that asks for an array
    "batch_norm": "the statistics have a value for each channel",
    "bin_counts": _SHAPES, "cholesky_grad": _INTERNAL, "cosine_similarity": _SHAPES,
    "cross_entropy": _LABELS,
    "ctc_loss": _LABELS, "ctc_losses_grad": _INTERNAL,
    "dot_product_attention": "masks have a shape", "embedding": _SHAPES,
    "flash_attention": _INTERNAL, "flash_attention_grad": _INTERNAL,
    "insert": _INTERNAL, "log_softmax_grad": _INTERNAL,
    "multi_margin_loss": _LABELS, "nll_loss": _LABELS,
    "segment_mean": _LABELS, "segment_sqrt_n": _LABELS, "segment_sum": _LABELS,
    "rms_standardize_grad": _INTERNAL, "setitem": _INTERNAL,
    "softmax_cross_entropy_grad": _INTERNAL, "standardize_grad": _INTERNAL,
    "sparse_softmax_cross_entropy_grad": _INTERNAL,
    "standardize_affine_grad": _INTERNAL, "standardize_affine_grads": _INTERNAL,
}  # fmt: skip


def _modes(op, args, keywords, place):
    """Functions of no argument that run an op in each mode; the argument at `place` is fixed."""
    places = [k for k, a in enumerate(args) if isinstance(a, np.ndarray) and k != place]
    arrays = [gg.asarray(args[k]) for k in places]
    rules = list(op.rules)
    wanted = [
        n
        for n, (k, x) in enumerate(zip(places, arrays, strict=True))
        if x.dtype.kind in "fc" and not getattr((rules[k:] or [None])[0], "is_missing", False)
    ]

    def run(*xs):
        values = list(args)
        for k, x in zip(places, xs, strict=True):
            values[k] = x
        return op.eager(*values, **keywords)

    def total(*xs):
        floats = [y for y in nest.flatten(run(*xs)) if y.dtype.kind in "fc"]
        return sum((gg.sum(gg.real(y)) for y in floats), gg.constant(0.0, np.float64))

    batches = [gg.stack([x, x]) for x in arrays]
    modes = {"eager": lambda: run(*arrays), "function": lambda: gg.function(run)(*arrays)}
    if op.name not in NOT_UNDER_VMAP:
        modes["vmap"] = lambda: gg.vmap(run)(*batches)
    if op.differentiable and wanted:
        slopes = gg.grad(total, wanted)
        modes["gradient"] = lambda: slopes(*arrays)
        modes["gradient in function"] = lambda: gg.function(slopes)(*arrays)
        if op.name not in NOT_UNDER_VMAP:
            modes["gradient in vmap"] = lambda: gg.vmap(slopes)(*batches)
    return modes


@pytest.mark.parametrize("name", [n for n in _CALLS if _CALLS[n][0].name not in NEED_ARRAYS])
@pytest.mark.thin(3)
def test_number_in_the_place_of_a_0d_array_has_its_result(name):
    op, args, keywords, i = _CALLS[name]
    numbers = [*args[:i], args[i].item(), *args[i + 1 :]]
    with_number = _modes(op, numbers, keywords, i)
    for mode, with_array in _modes(op, args, keywords, i).items():
        desired, actual = nest.flatten(with_array()), nest.flatten(with_number[mode]())
        for a, d in zip(actual, desired, strict=True):
            np.testing.assert_allclose(a.numpy(), d.numpy(), 1e-6, 1e-12, err_msg=mode)


@pytest.mark.parametrize("name", sorted(n for n, why in NEED_ARRAYS.items() if why != _INTERNAL))
def test_op_that_refuses_a_number_asks_for_an_array(name):
    messages = []
    for op, args, keywords, i in _CALLS.values():
        if op.name == name:
            try:
                op.eager(*args[:i], args[i].item(), *args[i + 1 :], **keywords)
            except DTypeError as error:
                messages.append(str(error))
    assert messages, "it takes numbers: remove it from NEED_ARRAYS"
    assert all("array" in m for m in messages)


def _results(op, args, keywords, dtype, device):
    """The results of an op, and the gradient by its float arrays, with arrays of a 16-bit dtype."""

    def place(a):
        a = np.asarray(a)
        return gg.asarray(a.astype(dtype) if a.dtype.kind == "f" else a, device=device)

    args = [a if type(a) in SCALARS else place(a) for a in args]
    keywords = {k: place(v) if isinstance(v, np.ndarray) else v for k, v in keywords.items()}
    sources = [
        a
        for a, rule in zip(args, [*op.rules, *[None] * len(args)], strict=False)
        if isinstance(a, gg.Tensor) and a.dtype == dtype and not getattr(rule, "is_missing", False)
    ]
    with gg.GradientTape() as tape:
        if op.differentiable:
            tape.watch(sources)
        results = nest.flatten(op.eager(*args, **keywords))
    floats = [y for y in results if y.dtype.kind in "fV"]
    if not op.differentiable or not sources or not floats:
        return results
    return results + tape.gradient(floats, sources, None, "zero")


CPU_ONLY = """eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre eval_hermite eval_hermitenorm
eval_jacobi eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_legendre hyp0f1 hyp1f1
hyp2f1 hyperu iv ive jv kv kve modstruve owens_t powm1 stdtr stdtrit struve voigt_profile
yv"""  # cupyx.scipy.special lacks them
_HALVES = [
    n
    for n, (op, args, _, i) in _CALLS.items()
    if op.name not in NEED_ARRAYS and "f" in op.kinds and args[i].dtype.kind in "fi"
]


@pytest.mark.parametrize("name", _HALVES)
@pytest.mark.thin(3)
def test_a_number_beside_bfloat16_is_as_weak_as_beside_float16(name, cuda):
    op, args, keywords, i = _CALLS[name]
    args = [*args[:i], args[i].item(), *args[i + 1 :]]
    results = _results(op, args, keywords, BFLOAT16, "cpu")
    dtypes = [y.dtype for y in _results(op, args, keywords, np.float16, "cpu")]
    assert [y.dtype for y in results] == [BFLOAT16 if d == np.float16 else d for d in dtypes]
    if op.name in CPU_ONLY.split():
        with pytest.raises(DeviceError, match="runs on the CPU only"):
            _results(op, args, keywords, BFLOAT16, cuda)
        return
    try:
        on_device = _results(op, args, keywords, BFLOAT16, cuda)
    except DeviceError as error:  # of polynomials and the like, which CuPy lacks too
        if "runs on the CPU only" not in str(error):
            raise
        return
    for a, d in zip(on_device, results, strict=True):
        assert getattr(a, "values", a).device == cuda
        gg.testing.assert_close(a, d, rtol=3e-2, atol=3e-2)
