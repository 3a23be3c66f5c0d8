# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Strided attention: the last `stride` keys, and the last key of every block of `stride` (Sparse Transformer, arXiv:1904.10509)."""
# example: strided(16)
# example: fixed(16, 2)


def strided(stride: int):
    def mask_mod(b, h, q_idx, kv_idx):
        back = q_idx - kv_idx
        return (back >= 0) & ((back < stride) | (back % stride == 0))

    return mask_mod


def fixed(stride: int, summary: int = 1):
    """The query's own block, and the last `summary` keys of every block before it."""

    def mask_mod(b, h, q_idx, kv_idx):
        own = q_idx // stride == kv_idx // stride
        return (q_idx >= kv_idx) & (own | (kv_idx % stride >= stride - summary))

    return mask_mod
