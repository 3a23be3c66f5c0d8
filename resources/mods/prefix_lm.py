# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Prefix-LM: everybody sees the first keys, the rest is causal (T5, PaliGemma)."""
# example: generate_prefix_lm_mask(1024)
# example: prefix_lm(torch.tensor([5, 9]))


def generate_prefix_lm_mask(prefix_length: int):
    """One prefix length for the whole batch."""

    def in_prefix(b, h, q_idx, kv_idx):
        return kv_idx < prefix_length

    return or_masks(in_prefix, causal_mask)


def prefix_lm(prefix_length):
    """`prefix_length` is a tensor: one length for each sequence of the batch."""

    def mask_mod(b, h, q_idx, kv_idx):
        return (kv_idx < prefix_length[b]) | (q_idx >= kv_idx)

    return mask_mod
