# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Shared prefix: several answers packed after one prompt see the prompt and themselves, not each other."""
# example: generate_shared_prefix_mask_mod(length_to_offsets([4, 3, 5]), torch.tensor([0, 0, 0]))
# example: shared_prefix(4, 3)


def generate_shared_prefix_mask_mod(offsets, prefix_document_id):
    """`prefix_document_id[d]` is the document that document d continues; a prompt continues itself."""
    document_id = offsets_to_document_ids(offsets)

    def mask_mod(b, h, q_idx, kv_idx):
        document = document_id[q_idx]
        prefix = prefix_document_id[document]
        own = (kv_idx >= offsets[document]) & (kv_idx <= q_idx)
        in_prefix = (kv_idx >= offsets[prefix]) & (kv_idx < offsets[prefix + 1])
        return own | (in_prefix & (prefix != document))

    return mask_mod


def shared_prefix(prefix_length: int, answer_length: int):
    """One prompt, then answers of one length."""

    def mask_mod(b, h, q_idx, kv_idx):
        in_prefix = kv_idx < prefix_length
        same = (q_idx - prefix_length) // answer_length == (kv_idx - prefix_length) // answer_length
        return (q_idx >= kv_idx) & (in_prefix | same)

    return mask_mod
