// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Values packed on the host, as a checkpoint stores them.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/weight_view.h"

namespace vitrine::engine {

/// The tensors of values that were packed, as bytes in the layout of memory.
struct PackedValues {
    std::vector<std::uint8_t> data, scales, scaleScales, zeros, order; ///< what the format does not have is empty
    kernels::DType scaleType = kernels::DType::U8;
    float scaleOffset = 0; ///< added to every unpacked scale

    const std::vector<std::uint8_t>& field(kernels::WeightField which) const;
};

/// Packs the values of one weight that come in pieces. The scales of NF4 are packed too.
class ValuePacker {
public:
    /// REQUIRES a packed format and `count`, of all values, a multiple of its quantization group.
    ValuePacker(kernels::WeightFormat format, std::int64_t count);

    /// Packs whole groups from value `first` on. Different threads may pack different groups at the same time. Throws
    /// BadInput when a value is not finite.
    void pack(std::int64_t first, std::span<const float> values);
    /// When every group was packed.
    PackedValues finish();

private:
    kernels::WeightFormat format_;
    PackedValues packed_;
    std::vector<float> scales_; ///< of a format that packs them when all are known
};

/// Packs whole groups of values. Throws BadInput when a value is not finite.
PackedValues packValues(kernels::WeightFormat format, std::span<const float> values);

} // namespace vitrine::engine
