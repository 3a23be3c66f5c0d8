// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/packing.h"

#include <algorithm>

#include "engine/quant/module_pattern.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {

std::int64_t groupOf(const WeightPacking& packing, std::int64_t in) {
    if (packing.group == kWholeRow) {
        return in;
    }
    return packing.group == 0 ? kernels::packedFormat(packing.format).group : packing.group;
}

std::int64_t rowGroupOf(const WeightPacking& packing, std::int64_t out) {
    return packing.rowGroup == kWholeRow ? out : packing.rowGroup;
}

void describePacked(const WeightPacking& packing, const kernels::Shape& shape, std::int64_t rows,
                    kernels::WeightView& view) {
    view.format = packing.format;
    view.group = groupOf(packing, shape[shape.rank() - 1]);
    view.rowGroup = rowGroupOf(packing, rows);
    view.scaleOffset = packing.scaleOffset;
    view.shape = shape;
}

std::string_view moduleOf(std::string_view weight) {
    constexpr std::string_view kWeight = ".weight";
    return weight.ends_with(kWeight) ? weight.substr(0, weight.size() - kWeight.size()) : weight;
}

bool Quantization::packs(std::string_view weight) const {
    const std::string_view module = moduleOf(weight);
    return std::ranges::none_of(ignored, [&](const std::string& pattern) { return matchesModule(pattern, module); });
}

WeightPacking stackPacking() {
    WeightPacking packing;
    packing.scheme = StorageScheme::GptOss;
    packing.format = kernels::WeightFormat::Mxfp4;
    return packing;
}

bool canStack(const WeightPacking& packing) {
    return !packing.ordered && packing.scheme != StorageScheme::BitsAndBytes;
}

WeightPacking linearPacking() {
    WeightPacking packing;
    packing.scheme = StorageScheme::BitsAndBytes;
    packing.format = kernels::WeightFormat::Nf4;
    packing.packedScales = true;
    return packing;
}

} // namespace vitrine::engine
