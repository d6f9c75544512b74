"""NVIDIA's libraries: cuBLASLt, cuDNN and cuSOLVER."""
