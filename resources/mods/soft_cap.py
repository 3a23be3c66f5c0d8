# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Soft-capping: tanh keeps every score between -cap and cap (Gemma 2, Grok 1)."""
# example: soft_cap(50)
# example: generate_tanh_softcap(30)
import torch


def soft_cap(cap: float = 30.0):
    def score_mod(score, b, h, q_idx, kv_idx):
        return torch.tanh(score / cap) * cap

    return score_mod


def generate_tanh_softcap(soft_cap: float, approx: bool = False):
    """`approx` asks PyTorch for the GPU's fast tanh; here the kernel's options decide."""

    def score_mod(score, b, h, q_idx, kv_idx):
        return torch.tanh(score / soft_cap) * soft_cap

    return score_mod
