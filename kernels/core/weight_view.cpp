// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/weight_view.h"

#include <algorithm>
#include <array>

namespace vitrine::kernels {

TensorView& WeightView::field(WeightField which) {
    switch (which) {
    case WeightField::Data:
        return data;
    case WeightField::Scales:
        return scales;
    case WeightField::Zeros:
        return zeros;
    case WeightField::Order:
        return order;
    case WeightField::ScaleScales:
        break;
    }
    return scaleScales;
}

std::span<const WeightFormatName> weightFormatNames() {
    static constexpr std::array<WeightFormatName, 11> kNames = {{{"DENSE", WeightFormat::Dense},
                                                                 {"MXFP4", WeightFormat::Mxfp4},
                                                                 {"NF4", WeightFormat::Nf4},
                                                                 {"INT4", WeightFormat::Int4},
                                                                 {"INT8", WeightFormat::Int8},
                                                                 {"FP8", WeightFormat::Fp8},
                                                                 {"Q4_K", WeightFormat::Q4K},
                                                                 {"Q6_K", WeightFormat::Q6K},
                                                                 {"Q4_1", WeightFormat::Q41},
                                                                 {"Q5_1", WeightFormat::Q51},
                                                                 {"Q5_K", WeightFormat::Q5K}}};
    return kNames;
}

WeightView denseWeight(const TensorView& data, bool transposed) {
    WeightView out;
    out.data = data;
    out.shape = data.shape;
    out.transposed = transposed;
    if (const int rank = data.shape.rank(); transposed && rank >= 2) {
        std::array<std::int64_t, kMaxRank> dims{};
        std::ranges::copy(data.shape.dims(), dims.begin());
        std::swap(dims[static_cast<std::size_t>(rank) - 1], dims[static_cast<std::size_t>(rank) - 2]);
        out.shape = Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
    }
    return out;
}

} // namespace vitrine::kernels
