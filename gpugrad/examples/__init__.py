"""Example training jobs; run one with ``python -m gpugrad.examples.NAME``, or with ``--help``.

digits          read handwritten digits with a perceptron or convolutions
charlm          a small GPT on Python's documentation, which it then continues
vae             a variational autoencoder that draws digits
neural_ode      learn a differential equation; gradients by the adjoint or through the solver
custom_kernel   an op with a CUDA kernel of your own, used in training
gp              Gaussian processes: L-BFGS on the likelihood, natural gradients for a sparse one
deblur          sharpen a blurred, noisy photograph
register        find the affine transform between two photographs
heat            find the conductivity of a plate from its temperatures, on a mesh
equalizer       fit an equalizer that undoes the sound of a room
"""
