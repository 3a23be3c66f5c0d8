// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products of many BF16 rows with a packed weight on a GPU: the one matrix becomes BF16 in scratch, and cuBLASLt
// multiplies by it. Expanding takes as long as it takes to write the matrix, which many rows outweigh.

#include <cstdint>

#include "kernels/core/op.h"
#include "kernels/ops/linear/matmul.h"

namespace vitrine::kernels {

/// Whether a device whose ops may have scratch for several launches multiplies so. Never for an adapter's product.
bool expandsWeight(const Matmul& op, const DeviceTraits& traits);

/// Bytes of the matrix in BF16.
std::uint64_t expandedBytes(const Matmul& op);

/// Scratch for it: 0 where the weight is multiplied as it is stored.
std::uint64_t expandedScratch(const Matmul& op, const DeviceTraits& traits);

/// Adds to the cost of a product what the expansion costs.
void addExpansion(Cost& cost, const Matmul& op, const DeviceTraits& traits);

} // namespace vitrine::kernels
