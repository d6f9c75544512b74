"""The suites of ci/dropin, where their tests come from, and the packages that they need."""

from __future__ import annotations

from typing import NamedTuple


class Library(NamedTuple):
    """Source with tests, of one version.

    Attributes:
        environment: of `ENVIRONMENTS`.
        ref: a tag or commit of `url`; the version, where there is no `url`.
        url: of a git repository; "" for the source distribution on PyPI.
        prepare: a shell command for the new checkout; `python` is the environment's.
    """

    environment: str
    ref: str
    url: str = ""
    prepare: str = ""


_GITHUB = "https://github.com"
LIBRARIES = {
    "autograd": Library("autograd", "v1.9.1", f"{_GITHUB}/HIPS/autograd"),
    "pymanopt": Library("autograd", "2.2.1", f"{_GITHUB}/pymanopt/pymanopt"),
    "lifelines": Library("autograd", "0.30.3"),
    "autograd-gamma": Library(
        "autograd",
        "5876e0320865c592ed4a370c6a6ef282cf163480",
        f"{_GITHUB}/CamDavidsonPilon/autograd-gamma",
    ),
    "paragami": Library("autograd", "v0.42", f"{_GITHUB}/rgiordan/paragami"),
    "vittles": Library("autograd", "v0.173", f"{_GITHUB}/rgiordan/vittles"),
    "ssm": Library(
        "autograd",
        "eb6c8aa33e5311d3564075807dec340759dd8081",
        f"{_GITHUB}/lindermanlab/ssm",
        "python setup.py build_ext --inplace",
    ),
    "pennylane": Library("autograd", "v0.45.1", f"{_GITHUB}/PennyLaneAI/pennylane"),
    "gpflow": Library("gpflow", "v2.9.2", f"{_GITHUB}/GPflow/GPflow"),
    "keras": Library("tensorflow", "v3.15.1", f"{_GITHUB}/keras-team/keras"),
    "einops": Library("backends", "v0.8.2", f"{_GITHUB}/arogozhnikov/einops"),
    "tensorly": Library("backends", "0.10.0"),
    "autoray": Library("backends", "v0.9.1", f"{_GITHUB}/jcmgray/autoray"),
    "pot": Library(  # tests of the month before: its source distribution lacks their conftest.py
        "backends",
        "aed0120242e86ab29e630fee59593ee99f416d97",
        f"{_GITHUB}/PythonOT/POT",
        "rm -r ot",  # it is not compiled, as the installed package is
    ),
    "pyhf": Library("backends", "v0.7.6", f"{_GITHUB}/scikit-hep/pyhf"),
}

_ALL = (
    "pytest numpy==2.4.6 scipy==1.17.1 ml_dtypes array-api-compat setuptools>=77,<81 wheel Cython"
)
ENVIRONMENTS = {
    "autograd": f"{_ALL} autograd==1.8.0 autograd-gamma==0.5.0 lifelines==0.30.3 pymanopt==2.2.1 "
    "pennylane==0.45.1 pandas==2.3.3 scikit-learn seaborn numba flaky nose "
    "pytest-mock pytest-rng paragami==0.42 dill jinja2 tqdm",
    "gpflow": f"{_ALL} tensorflow-cpu==2.21.0 tensorflow-probability==0.25.0 tf-keras "
    "check-shapes deprecated multipledispatch tabulate lark dropstackframe",
    "tensorflow": f"{_ALL} tensorflow-cpu==2.21.0 torch==2.13.0 autograd==1.9.1 pandas grain "
    "pymanopt==2.2.1 scikit-learn matplotlib orbax-checkpoint tensorboard",
    "backends": f"{_ALL} einops==0.8.2 tensorly==0.10.0 autoray==0.9.1 POT==0.9.7.post1 "
    "pyhf==0.7.6 iminuit==2.33.0 hypothesis pytest-mock pytest-console-scripts requests-mock "
    "torch==2.13.0",
}
"""Requirements for pip."""


class Suite(NamedTuple):
    """Tests of a library.

    Attributes:
        plugin: in ci/dropin_parts, puts gpugrad in the place of what the library uses.
        arguments: for pytest, in the checkout.
        original: the plugin of the run on the original, if it needs one.
        before: a module of ci/dropin_parts that both runs import after the plugin.
        library: of `LIBRARIES`, where the tests are; "" has the suite's name.
        environment: "" is the library's.
    """

    plugin: str
    arguments: str
    original: str = "sys"
    before: str = "sys"
    library: str = ""
    environment: str = ""


_NO_PEERS = " ".join(
    f"--ignore=tests/backends/test_{n}.py" for n in ("jax", "pytorch", "tensorflow")
)

SUITES = {
    "autograd": Suite("as_autograd", "tests --ignore=tests/test_performance.py"),
    "pymanopt": Suite(
        "as_autograd",
        f"tests {_NO_PEERS} --ignore=tests/test_problem.py -k 'not (jax or torch or tensorflow)'",
        before="mocked_peers",
    ),
    "pymanopt-tensorflow": Suite(
        "as_tensorflow",
        "tests/test_problem.py tests/backends/test_tensorflow.py tests/test_examples.py "
        "-k 'tensorflow or Problem or TensorFlow'",
        before="mocked_peers",
        library="pymanopt",
        environment="tensorflow",
    ),
    "lifelines": Suite("as_autograd", "lifelines/tests --ignore=lifelines/tests/test_plotting.py"),
    "autograd-gamma": Suite("as_autograd", "tests"),
    "paragami": Suite("as_autograd", "paragami/tests", before="old_numpy"),
    "vittles": Suite("as_autograd", "vittles/tests", before="old_numpy"),
    "ssm": Suite("as_autograd", "tests", before="old_numpy"),
    "pennylane-numpy": Suite("as_autograd", "tests/numpy", library="pennylane"),
    "pennylane-gradients": Suite(
        "as_autograd",
        "tests/test_classical_gradients.py tests/test_qaoa.py tests/test_autograd_grad.py "
        "tests/test_grad.py tests/transforms/test_classical_jacobian.py",
        library="pennylane",
    ),
    "pennylane-interfaces": Suite(
        "as_autograd", "-m autograd tests/workflow/interfaces", library="pennylane"
    ),
    "gpflow": Suite(
        "as_gpflow",
        "tests/gpflow/models/test_gpr.py tests/gpflow/test_base.py tests/gpflow/likelihoods "
        "tests/gpflow/kernels --ignore=tests/gpflow/kernels/test_broadcasting.py",
    ),
    # backends of libraries that have several, against their NumPy backend
    "einops": Suite("as_einops", "einops/tests", "with_numpy"),
    "tensorly": Suite("as_tensorly", "tensorly", "with_numpy"),
    "autoray": Suite(
        "as_autoray",
        "tests/test_autoray.py tests/test_linalg.py tests/test_random.py tests/test_grad.py",
        "with_numpy",
    ),
    "pot": Suite(
        "as_pot", "-c /dev/null --rootdir . test/test_backend.py test/test_ot.py", "with_numpy"
    ),
    "pyhf": Suite(
        "as_pyhf",
        "-c /dev/null --rootdir . -k jax tests/test_pdf.py tests/test_optim.py tests/test_infer.py "
        "tests/test_interpolate.py tests/test_probability.py tests/test_constraints.py",
        "with_numpy",
    ),
}

_KERAS = {  # folders of keras/src; the original is torch's backend
    "keras": "optimizers losses metrics regularizers initializers",
    "keras-layers": "layers/core layers/activations layers/merging layers/reshaping "
    "layers/regularization layers/layer_test.py activations",
    "keras-networks": "layers/convolutional layers/pooling layers/normalization "
    "layers/attention layers/rnn",
    "keras-preprocessing": "layers/preprocessing",
    "keras-ops": "ops",
    "keras-trainers": "trainers callbacks",
    "keras-models": "models saving legacy dtype_policies quantizers random",
}
for _name, _folders in _KERAS.items():
    _arguments = " ".join(f"keras/src/{folder}" for folder in _folders.split())
    if _name == "keras-ops":
        _arguments += " -k 'not Dtype'"  # 5,004 tests of dtypes
    _arguments += " --assert=plain --continue-on-collection-errors"
    SUITES[_name] = Suite("as_keras", _arguments, "as_keras_torch", library="keras")
