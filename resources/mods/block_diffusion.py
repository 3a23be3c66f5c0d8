# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Block diffusion: noised tokens see their own block and the clean blocks before it, clean tokens are block-causal (arXiv:2503.09573)."""
# example: generate_block_diffusion_mask(64, 8)


def generate_block_diffusion_mask(seq_len: int, block_size: int):
    """Positions 0 .. seq_len - 1 are noised, seq_len .. 2 seq_len - 1 the same tokens clean."""

    def mask_mod(b, h, q_idx, kv_idx):
        q_clean = q_idx >= seq_len
        kv_clean = kv_idx >= seq_len
        q_block = q_idx % seq_len // block_size
        kv_block = kv_idx % seq_len // block_size
        own_noise = ~q_clean & ~kv_clean & (q_block == kv_block)
        noise_sees_clean = ~q_clean & kv_clean & (q_block > kv_block)
        clean = q_clean & kv_clean & (q_block >= kv_block)
        return own_noise | noise_sees_clean | clean

    return mask_mod


def block_causal(block_size: int):
    """A query sees its whole block and all blocks before it."""

    def mask_mod(b, h, q_idx, kv_idx):
        return q_idx // block_size >= kv_idx // block_size

    return mask_mod
