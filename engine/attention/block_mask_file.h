// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <string>

#include "kernels/program/block_mask.h"

namespace vitrine::engine {

/// Most bytes of one file of arrays.
inline constexpr std::uint64_t kLargestExport = std::uint64_t{4} << 30;

/// Writes a BlockMask as PyTorch's arrays (kv_num_blocks, kv_indices, full_kv_*, q_*, full_q_*; int32, safetensors);
/// blocks that the lengths cut count as partial, as they do there. Throws BadInput when they would take more than
/// kLargestExport.
void writeBlockMaskArrays(const kernels::BlockMask& mask, const std::string& path);

} // namespace vitrine::engine
