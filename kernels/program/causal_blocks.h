// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The block mask of a causal mask that hides early keys, such as those of other documents. It follows from two rows of
// each block row (kernels/program/span_blocks.h).

#include <functional>

#include "kernels/program/block_mask.h"

namespace vitrine::kernels {

/// Query q of `tokens` sees the keys from firstKey(q) to q. REQUIRES at least one token, and a firstKey(q) of 0 to q
/// that never falls.
BlockMask causalBlockMask(std::int64_t tokens, const std::function<std::int64_t(std::int64_t query)>& firstKey);

} // namespace vitrine::kernels
