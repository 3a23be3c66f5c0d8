// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/nf4_format.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace vitrine::kernels {

namespace {

/// The middle between two neighbours of kNf4Values: a larger value gets the upper one.
constexpr std::array<float, 15> kNf4Borders = {
    -0.8480964004993439F,  -0.6106329262256622F,   -0.4599952697753906F, -0.33967943489551544F, -0.23460740596055984F,
    -0.13791173323988914F, -0.045525018125772476F, 0.03979014977812767F, 0.1202552504837513F,   0.2035212516784668F,
    0.2920137718319893F,   0.3893125355243683F,    0.5016634166240692F,  0.6427869200706482F,   0.8614784178118011F,
};

std::string nf4Problem(const WeightView& weight) {
    const Shape& data = weight.data.shape;
    const Shape& scales = weight.scales.shape;
    const bool packedScales = !weight.scaleScales.empty();
    if (weight.transposed || weight.shape.rank() != 2 || !weight.zeros.empty() || !weight.order.empty()) {
        return "NF4 weights are single matrices, never transposed, without zeros and order";
    }
    if (weight.data.dtype != DType::U8 || !weight.data.contiguous() || weight.scales.empty() ||
        !weight.scales.contiguous() || data.rank() != 2 || scales.rank() != 2) {
        return "data and scales are not matrices without gaps, the data U8";
    }
    if (data[0] != scales[0] || data[1] * 2 != scales[1] * kNf4Group) {
        return "there is not one scale for 64 elements of a row: the input axis must be a multiple of 64";
    }
    if (weight.scales.dtype != (packedScales ? DType::U8 : DType::F32)) {
        return "the scales are not F32, or U8 with scales of scales";
    }
    const std::int64_t codeScales = (scales.count() + kNf4ScaleGroup - 1) / kNf4ScaleGroup;
    if (packedScales && (weight.scaleScales.dtype != DType::F32 || !weight.scaleScales.contiguous() ||
                         weight.scaleScales.shape.count() != codeScales)) {
        return "there is not one F32 scale for 256 packed scales";
    }
    return {};
}

void requireNf4Sizes(bool right) {
    if (!right) {
        throw base::Internal("NF4: the sizes of values, codes and scales do not belong together");
    }
}

} // namespace

const DynamicMap& nf4ScaleMap() {
    static const DynamicMap kMap = signedDynamicMap();
    return kMap;
}

float Nf4Scales::at(std::int64_t group) const {
    if (floats != nullptr) {
        return floats[group];
    }
    return nf4ScaleMap()[codes[group]] * codeScales[group / kNf4ScaleGroup] + offset;
}

Nf4Scales nf4Scales(const PackedMatrix& matrix) {
    Nf4Scales scales;
    if (matrix.scaleScales == nullptr) {
        scales.floats = reinterpret_cast<const float*>(matrix.scales);
        return scales;
    }
    scales.codes = matrix.scales;
    scales.codeScales = matrix.scaleScales;
    scales.offset = matrix.scaleOffset;
    return scales;
}

const PackedFormat& nf4Format() {
    static const PackedFormat kRow = [] {
        PackedFormat row{WeightFormat::Nf4, "nf4", "NF4", DType::Nf4, kNf4Group, 2};
        row.scalesSuffix = ".absmax";
        row.problem = nf4Problem;
        row.expand = [](const PackedMatrix& matrix, std::int64_t index, std::int64_t begin, std::int64_t count,
                        float* out) {
            const std::int64_t first = index * matrix.rowBytes * 2; // groups are counted over the whole matrix
            expandNf4(matrix.data, nf4Scales(matrix), first + begin, count, out);
        };
        return row;
    }();
    return kRow;
}

void expandNf4(const std::uint8_t* data, const Nf4Scales& scales, std::int64_t begin, std::int64_t count, float* out) {
    const std::int64_t end = begin + count;
    while (begin < end) {
        const std::int64_t stop = std::min(end, (begin / kNf4Group + 1) * kNf4Group);
        const float scale = scales.at(begin / kNf4Group);
        float table[16];
        for (std::size_t i = 0; i < 16; ++i) {
            table[i] = kNf4Values[i] * scale;
        }
        for (; begin < stop; begin += 2) {
            const std::uint8_t pair = data[begin / 2];
            *out++ = table[pair >> 4];
            *out++ = table[pair & 15U];
        }
    }
}

std::uint8_t nearestNf4(float value) {
    return static_cast<std::uint8_t>(std::ranges::lower_bound(kNf4Borders, value) - kNf4Borders.begin());
}

void quantizeNf4(std::span<const float> values, std::span<std::uint8_t> data, std::span<float> scales) {
    requireNf4Sizes(values.size() % kNf4Group == 0 && data.size() * 2 == values.size() &&
                    scales.size() * kNf4Group == values.size());
    for (std::size_t group = 0; group < scales.size(); ++group) {
        const std::span<const float> in = values.subspan(group * kNf4Group, kNf4Group);
        float largest = 0;
        for (const float value : in) {
            if (!std::isfinite(value)) {
                throw base::BadInput("NF4: a value is not finite and has no 4-bit form");
            }
            largest = std::max(largest, std::fabs(value));
        }
        scales[group] = largest;
        const auto code = [&](float value) { return nearestNf4(largest > 0 ? value / largest : 0.0F); };
        for (std::size_t i = 0; i < in.size(); i += 2) {
            data[(group * kNf4Group + i) / 2] = static_cast<std::uint8_t>(code(in[i]) << 4 | code(in[i + 1]));
        }
    }
}

float packNf4Scales(std::span<const float> scales, std::span<std::uint8_t> codes, std::span<float> codeScales) {
    requireNf4Sizes(codes.size() == scales.size() &&
                    codeScales.size() == (scales.size() + kNf4ScaleGroup - 1) / kNf4ScaleGroup);
    double sum = 0;
    for (const float scale : scales) {
        sum += scale;
    }
    const auto mean = static_cast<float>(scales.empty() ? 0 : sum / static_cast<double>(scales.size()));
    const CodeTable table(nf4ScaleMap().data());
    std::vector<float> rest(scales.begin(), scales.end());
    for (float& scale : rest) {
        scale -= mean;
    }
    for (std::size_t group = 0; group < codeScales.size(); ++group) {
        const std::size_t begin = group * kNf4ScaleGroup;
        const std::size_t count = std::min<std::size_t>(kNf4ScaleGroup, rest.size() - begin);
        codeScales[group] = packCodes(table, rest.data() + begin, static_cast<std::int64_t>(count), &codes[begin]);
    }
    return mean;
}

} // namespace vitrine::kernels
