"""Models of the bench of training steps, each written once for all libraries."""

from __future__ import annotations

from networks.images import VAE, MobileNet, ResNet, UNet, ViT
from networks.model import Arrays, Model
from networks.others import DLRM, PINN, GraphNetwork
from networks.science import Conv3d, HeatEquation, NBody, Neighbours
from networks.sequences import GPT, LSTM, GRULayer, LSTMLayer, LSTMScan, Seq2Seq

__all__ = ["MODELS", "Arrays", "Model"]

MODELS: dict[str, type[Model]] = {
    "GPT": GPT,
    "ResNet": ResNet,
    "LSTM": LSTM,
    "LSTM, scan": LSTMScan,
    "LSTM layer": LSTMLayer,
    "GRU layer": GRULayer,
    "VAE": VAE,
    "PINN": PINN,
    "ViT": ViT,
    "U-Net": UNet,
    "MobileNet": MobileNet,
    "seq2seq": Seq2Seq,
    "DLRM": DLRM,
    "graph network": GraphNetwork,
    "k nearest neighbours": Neighbours,
    "Conv3d": Conv3d,
    "n-body": NBody,
    "heat equation": HeatEquation,
}
"""By name, in the order of the tables."""
