// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/stored_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/quant/mxfp4.h"
#include "engine/quant/nf4_checkpoint.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {
namespace {

using kernels::WeightField;
using kernels::WeightFormat;

/// The scale byte that gives uniform nibbles the deviation 1 / sqrt(in).
float randomMxfp4Scale(std::int64_t in) {
    // Mean square of the 16 values of E2M1.
    constexpr float kMeanSquare = (0.25F + 1 + 2.25F + 4 + 9 + 16 + 36) / 8;
    const float deviation = 1 / std::sqrt(static_cast<float>(in));
    return 127 + std::round(std::log2(deviation / std::sqrt(kMeanSquare)));
}

} // namespace

std::vector<StoredTensor> storedTensors(WeightFormat format, const std::string& name,
                                        std::span<const std::int64_t> shape, bool packedScales) {
    const kernels::PackedFormat& packed = kernels::packedFormat(format);
    if (format == WeightFormat::Nf4) {
        return nf4StoredTensors(name, {shape[0], shape[1], packedScales, 0});
    }
    std::vector<std::int64_t> groups(shape.begin(), shape.end());
    groups.back() /= packed.group;
    std::vector<std::int64_t> data = groups;
    data.push_back(static_cast<std::int64_t>(kernels::bytesOf(packed.element, packed.group)));
    return {{WeightField::Data, name + std::string(packed.dataSuffix), kernels::DType::U8, data},
            {WeightField::Scales, name + std::string(packed.scalesSuffix), kernels::DType::U8, groups}};
}

kernels::Shape shapeInMemory(WeightFormat format, WeightField field, std::span<const std::int64_t> stored,
                             const kernels::Shape& weight) {
    if (format != WeightFormat::Nf4 || field == WeightField::ScaleScales) {
        return kernels::Shape(stored);
    }
    // Files hold one row of all; kernels take rows of the matrix.
    return {weight[0], weight[1] / (field == WeightField::Data ? 2 : kernels::packedFormat(format).group)};
}

std::optional<WeightFormat> formatOfMethod(std::string_view method) {
    const std::span<const kernels::PackedFormat> all = kernels::packedFormats();
    const auto found = std::ranges::find(all, method, &kernels::PackedFormat::method);
    return method.empty() || found == all.end() ? std::nullopt : std::optional(found->format);
}

std::optional<WeightFormat> formatInFile(const std::string& name, const std::function<bool(const std::string&)>& has) {
    for (const kernels::PackedFormat& packed : kernels::packedFormats()) {
        if (has(name + std::string(packed.markSuffix))) {
            return packed.format;
        }
    }
    return has(name) ? std::optional(WeightFormat::Dense) : std::nullopt;
}

RandomBytes randomBytes(WeightFormat format, WeightField field, std::span<const std::int64_t> shape) {
    if (format != WeightFormat::Mxfp4 || field == WeightField::Data) {
        return {};
    }
    return {randomMxfp4Scale(shape.back() * kernels::packedFormat(format).group), 0};
}

void checkStoredBytes(WeightFormat format, WeightField field, kernels::DType dtype, std::span<const std::uint8_t> bytes,
                      const std::function<std::string()>& name, std::uint64_t first) {
    if (format == WeightFormat::Mxfp4 && field == WeightField::Scales) {
        checkMxfp4Scales(bytes, name(), first);
    } else if (format == WeightFormat::Nf4 && dtype == kernels::DType::F32) {
        std::vector<float> scales(bytes.size() / sizeof(float));
        std::memcpy(scales.data(), bytes.data(), scales.size() * sizeof(float));
        checkNf4Scales(scales, name, first / sizeof(float));
    }
}

bool canMergePacked(WeightFormat format) {
    return format == WeightFormat::Mxfp4;
}

std::string_view methodOfFormat(kernels::WeightFormat format) {
    return kernels::packedFormat(format).method;
}

WeightFormat formatNamed(std::string_view name) {
    const std::span<const kernels::PackedFormat> all = kernels::packedFormats();
    const auto found = std::ranges::find(all, name, &kernels::PackedFormat::name);
    return found == all.end() ? WeightFormat::Dense : found->format;
}

} // namespace vitrine::engine
