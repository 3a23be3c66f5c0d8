// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products of up to 64 rows whose contracted axis is split between the blocks of a cluster
// (kernels/device/linear/split_rows.cuh).

#include <initializer_list>

#include "kernels/device/abi/tensor_map.h"
#include "kernels/ops/linear/few_rows_cuda.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kMaxSplitRows = 64;

/// Clusters that surely run at once: processing clusters of the device have other numbers of multiprocessors than
/// multiples of four, and another number on each device (30 clusters fit the 132 multiprocessors of the H200 that was
/// asked).
std::int64_t clustersAtOnce(const CudaContext& context);

/// How split_rows.cuh lays out shared memory: as many stages as fit beside x and the parts of the sums.
struct SplitLayout {
    std::int64_t tokens = 0, columns = 0, stages = 0, sharedBytes = 0;

    SplitLayout(std::int64_t dim, std::int64_t rows, std::int64_t ofTile, std::int64_t limit);
};

/// The narrowest of these tiles with which a result of `features` columns is made by clusters that run at once; 0:
/// none.
std::int64_t narrowest(std::initializer_list<std::int64_t> columns, std::int64_t features, std::int64_t clusters);

/// A weight (out, in) in tiles of `rows` rows.
abi::TensorMap weightMap(const TensorView& weight, std::int64_t rows);

/// Launches and says true, or does nothing and says false when shapes, types, alignment or the kernel packs do not
/// allow it, or when weight_stream.cuh's form is faster. The weight is packedMatrix().
bool multiplySplit(CudaContext& context, const FewRowsProduct& product);

} // namespace vitrine::kernels
