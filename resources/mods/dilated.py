# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Dilated attention: within a window, every `dilation`-th key (LongNet, Longformer)."""
# example: generate_dilated_sliding_window(64, 4)
# example: dilated_causal(3)
# example: dilated_heads()


def generate_dilated_sliding_window(window_size: int, dilation: int):
    def mask_mod(b, h, q_idx, kv_idx):
        distance = (q_idx - kv_idx).abs()
        return (distance <= window_size) & (distance % dilation == 0)

    return mask_mod


def dilated_causal(dilation: int):
    def mask_mod(b, h, q_idx, kv_idx):
        return ((q_idx - kv_idx) % dilation == 0) & (q_idx >= kv_idx)

    return mask_mod


def dilated_heads():
    """Head h looks back in steps of h + 1."""

    def mask_mod(b, h, q_idx, kv_idx):
        return ((q_idx - kv_idx) % (h + 1) == 0) & (q_idx >= kv_idx)

    return mask_mod
