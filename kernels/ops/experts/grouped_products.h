// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A GroupedMatmul with an adapter as three without, as kernels/ops/linear/adapter_products.h does for one matrix. A GPU
// may make `base` and `up` at once.

#include "kernels/core/device_traits.h"
#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/experts/grouped_matmul.h"

namespace vitrine::kernels {

struct GroupedAdapterProducts {
    GroupedAdapterProducts(const GroupedMatmul& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        visit(base);
        visit(down);
        visit(up);
    }

    GroupedMatmul base, down, up;
    std::uint64_t bytes = 0;
};

/// How a GPU multiplies BF16 rows by a packed stack: some experts at a time become BF16 in scratch.
struct ExpandedExperts {
    static constexpr std::uint64_t kMostBytes = std::uint64_t{512} << 20;

    /// Whether products of rows of this type go this way.
    static bool fits(const WeightView& weight, DType rows, DType out);
    ExpandedExperts(const WeightView& weight, ScratchLayout layout);
    /// 0 where a device's ops have no scratch for several launches, or the weight is multiplied as it is stored.
    static std::uint64_t scratchBytes(const WeightView& weight, DType rows, DType out, const DeviceTraits& traits);

    std::int64_t together; ///< experts
    TensorView values;     ///< (together, out, in) BF16
    std::uint64_t bytes;
};

/// Experts [begin, end) of a stack.
WeightView sliceExperts(const WeightView& weight, std::int64_t begin, std::int64_t end);

} // namespace vitrine::kernels
