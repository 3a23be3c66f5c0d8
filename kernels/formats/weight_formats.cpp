// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/weight_formats.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <vector>

#include "base/error.h"
#include "kernels/formats/fp8_format.h"
#include "kernels/formats/integer_format.h"
#include "kernels/formats/k_quant_format.h"
#include "kernels/formats/mxfp4_format.h"
#include "kernels/formats/nf4_format.h"

namespace vitrine::kernels {

namespace {

/// Every packed format has a row here.
std::vector<PackedFormat>& rows() {
    static std::vector<PackedFormat> kRows = {mxfp4Format(), nf4Format(), int4Format(), int8Format(), fp8Format(),
                                              q4kFormat(),   q6kFormat(), q41Format(),  q51Format(),  q5kFormat()};
    return kRows;
}

} // namespace

std::span<const PackedFormat> packedFormats() {
    return rows();
}

const PackedFormat& packedFormat(WeightFormat format) {
    const auto entry = std::ranges::find(rows(), format, &PackedFormat::format);
    if (entry == rows().end()) {
        throw base::Internal("a dense weight was taken for a packed one");
    }
    return *entry;
}

const PackedFormat* packedFormatOf(DType dtype, std::string_view tensor) {
    const auto has = [&](std::string_view part) {
        return !part.empty() && tensor.find(part) != std::string_view::npos;
    };
    const auto entry = std::ranges::find_if(rows(), [&](const PackedFormat& format) {
        return (format.element != DType::None && bitsOf(format.element) < 8 && dtype == format.element) ||
               (dtype == DType::U8 && (has(format.dataSuffix) || has(format.scalesSuffix) || has(format.name)));
    });
    return entry == rows().end() ? nullptr : &*entry;
}

std::string packedTitles() {
    std::string out;
    for (const PackedFormat& row : rows()) {
        out += out.empty() ? "" : ", ";
        out += row.title;
    }
    return out;
}

std::string weightFormatWords(const WeightView& weight, std::int64_t rows) {
    if (!weight.quantized()) {
        return {};
    }
    const PackedFormat& format = packedFormat(weight.format);
    std::string title(format.title);
    if (format.group != 0) {
        return title; // all its groups have one size
    }
    const bool wholeRow = weight.group == weight.inFeatures();
    if (weight.rowGroup != 1) {
        return wholeRow && weight.rowGroup == rows
                   ? title + ", one scale"
                   : fmt::format("{}, blocks of {} x {}", title, weight.rowGroup, weight.group);
    }
    return wholeRow ? title + ", whole rows" : fmt::format("{}, groups of {}", title, weight.group);
}

AddedFormat::AddedFormat(const PackedFormat& row) {
    rows().push_back(row);
}

AddedFormat::~AddedFormat() {
    rows().pop_back();
}

WeightView withShape(WeightView packed) {
    const std::int64_t group = packedFormat(packed.format).group;
    packed.group = group == 0 ? packed.group : group;
    if (packed.shape.rank() > 0) {
        return packed;
    }
    std::array<std::int64_t, kMaxRank> dims{};
    const std::span<const std::int64_t> groups = packed.scales.shape.dims();
    std::ranges::copy(groups, dims.begin());
    if (!groups.empty()) {
        dims[groups.size() - 1] *= packed.group;
    }
    packed.shape = Shape(std::span<const std::int64_t>(dims.data(), groups.size()));
    return packed;
}

WeightView packedWeight(WeightFormat format, const TensorView& data, const TensorView& scales,
                        const TensorView& scaleScales, float scaleOffset) {
    WeightView out;
    out.format = format;
    out.data = data;
    out.scales = scales;
    out.scaleScales = scaleScales;
    out.scaleOffset = scaleOffset;
    return withShape(out);
}

} // namespace vitrine::kernels
