# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""ALiBi: each head lowers the score of distant keys by its own slope (arXiv:2108.12409)."""
# example: generate_alibi_bias(8)
# example: alibi(alibi_slopes(8))
import torch


def alibi_slopes(heads: int):
    """2^(-8/heads), 2^(-16/heads), ...: one slope for each head."""
    return torch.exp2(torch.arange(1, heads + 1) * (-8.0 / heads))


def alibi(slopes):
    def score_mod(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    return score_mod


def generate_alibi_bias(H: int):
    """The slopes as a formula of the head: nothing is captured."""

    def score_mod(score, b, h, q_idx, kv_idx):
        slope = torch.exp2((h + 1) * (-8.0 / H))
        return score + slope * (kv_idx - q_idx)

    return score_mod
