# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Global tokens and a sliding window: marked tokens see and are seen by all, the others look around (Longformer)."""
# example: generate_global_sliding_window(64, torch.arange(512) < 4)
# example: global_sliding_causal(64, 4)


def generate_global_sliding_window(window_size: int, is_global):
    """`is_global` is a boolean tensor: one value for each position."""

    def mask_mod(b, h, q_idx, kv_idx):
        near = (q_idx - kv_idx).abs() <= window_size
        return near | is_global[q_idx] | is_global[kv_idx]

    return mask_mod


def global_sliding_causal(window_size: int, global_tokens: int):
    """The first `global_tokens` tokens are global; nobody looks ahead."""

    def mask_mod(b, h, q_idx, kv_idx):
        near = q_idx - kv_idx <= window_size
        return (q_idx >= kv_idx) & (near | (kv_idx < global_tokens))

    return mask_mod
