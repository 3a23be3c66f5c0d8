// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/packed_format.h"

#include "kernels/formats/weight_formats.h"

namespace vitrine::kernels {

namespace {

/// The part of a field that belongs to an expert: experts lie one after the other.
const std::uint8_t* partOf(const TensorView& field, std::int64_t experts, std::int64_t expert) {
    const auto bytes = static_cast<std::int64_t>(field.bytes());
    return field.empty() ? nullptr : field.as<const std::uint8_t>() + bytes / experts * expert;
}

bool isScaleType(DType dtype) {
    return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

std::string scalesProblem(const WeightView& weight) {
    const Shape& scales = weight.scales.shape;
    if (weight.scales.empty() || !weight.scales.contiguous() || !isScaleType(weight.scales.dtype)) {
        return "the scales are missing, have gaps or are no F32, BF16 or F16";
    }
    if (weight.group <= 0 || weight.rowGroup <= 0 || scales.rank() != weight.shape.rank()) {
        return "the rank of the scales is not the weight's, or a group has no size";
    }
    const std::int64_t rows = (weight.outFeatures() + weight.rowGroup - 1) / weight.rowGroup;
    const std::int64_t groups = (weight.inFeatures() + weight.group - 1) / weight.group;
    const bool stack = scales.rank() == 3;
    if ((stack && scales[0] != weight.experts()) || scales[scales.rank() - 2] != rows ||
        scales[scales.rank() - 1] != groups) {
        return "there is not one scale for each group";
    }
    return {};
}

} // namespace

PackedMatrix packedMatrixOf(const WeightView& weight, std::int64_t expert) {
    const std::int64_t experts = weight.experts();
    PackedMatrix out;
    out.format = &packedFormat(weight.format);
    out.data = partOf(weight.data, experts, expert);
    out.scales = partOf(weight.scales, experts, expert);
    out.zeros = partOf(weight.zeros, experts, expert);
    out.scaleScales = reinterpret_cast<const float*>(partOf(weight.scaleScales, experts, expert));
    out.order = reinterpret_cast<const std::int32_t*>(partOf(weight.order, experts, expert));
    out.scaleType = weight.scales.dtype;
    const std::int64_t rows = experts * weight.outFeatures();
    out.rowBytes = rows == 0 ? 0 : static_cast<std::int64_t>(weight.data.bytes()) / rows;
    out.group = weight.group;
    out.rowGroup = weight.rowGroup;
    out.groups = weight.group == 0 ? 0 : (weight.inFeatures() + weight.group - 1) / weight.group;
    out.scaleOffset = weight.scaleOffset;
    return out;
}

std::string groupedProblem(const WeightView& weight, int bits) {
    const std::int64_t rows = weight.experts() * weight.outFeatures();
    const std::int64_t rowBits = weight.inFeatures() * bits;
    if (weight.transposed) {
        return "packed weights are never transposed";
    }
    if (weight.data.dtype != DType::U8 || !weight.data.contiguous() || rowBits % 8 != 0 ||
        static_cast<std::int64_t>(weight.data.bytes()) != rows * (rowBits / 8)) {
        return "the data are not U8 rows without gaps";
    }
    if (!weight.scaleScales.empty()) {
        return "there are scales of scales";
    }
    if (std::string problem = scalesProblem(weight); !problem.empty()) {
        return problem;
    }
    if (!weight.zeros.empty() &&
        (weight.zeros.dtype != DType::U8 || !weight.zeros.contiguous() || weight.zeros.shape != weight.scales.shape)) {
        return "the zeros are not U8 of the scales' shape";
    }
    if (!weight.order.empty() && (weight.order.dtype != DType::I32 || !weight.order.contiguous() ||
                                  weight.order.shape.count() != weight.experts() * weight.inFeatures())) {
        return "the order is not I32 with one number for each input of each matrix";
    }
    return {};
}

} // namespace vitrine::kernels
