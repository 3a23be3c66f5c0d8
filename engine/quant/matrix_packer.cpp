// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/matrix_packer.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "base/error.h"
#include "engine/quant/fp8_quantizer.h"
#include "engine/quant/integer_quantizer.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/core/floats.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightFormat;

constexpr std::int64_t kPackGrain = std::int64_t{1} << 15; ///< values that are worth a thread's while

/// body(begin, end) over the rows.
template <class Body> void forRows(base::ThreadPool& pool, const MatrixSize& size, const Body& body) {
    const std::int64_t grain = std::max<std::int64_t>(1, kPackGrain / std::max<std::int64_t>(1, size.in));
    pool.parallelFor(size.out, grain, [&](std::int64_t begin, std::int64_t end, int) { body(begin, end); });
}

template <class T> std::span<T> rowsOf(std::span<T> all, std::int64_t perRow, std::int64_t begin, std::int64_t end) {
    return all.subspan(static_cast<std::size_t>(begin * perRow), static_cast<std::size_t>((end - begin) * perRow));
}

std::vector<std::uint8_t> bytesOfScales(DType dtype, const std::vector<float>& scales) {
    const auto count = static_cast<std::int64_t>(scales.size());
    std::vector<std::uint8_t> bytes(kernels::bytesOf(dtype, count));
    kernels::storeFloats(dtype, scales.data(), count, bytes.data(), 0);
    return bytes;
}

PackedValues packIntegers(const WeightPacking& packing, const MatrixSize& size, bool symmetric, DType dtype,
                          std::span<const float> values, base::ThreadPool& pool) {
    const IntegerRules rules = integerRules(packing, size, symmetric, dtype);
    const std::int64_t perRow = size.in / rules.group;
    std::vector<std::uint8_t> codes(values.size());
    std::vector<IntegerGroup> groups(static_cast<std::size_t>(size.out * perRow));
    forRows(pool, size, [&](std::int64_t begin, std::int64_t end) {
        quantizeIntegers(rules, rowsOf(values, size.in, begin, end), rowsOf(std::span(codes), size.in, begin, end),
                         rowsOf(std::span(groups), perRow, begin, end));
    });
    return packedIntegers(packing, rules, codes, groups);
}

PackedValues packFp8(const WeightPacking& packing, const MatrixSize& size, std::span<const float> values,
                     base::ThreadPool& pool) {
    const std::int64_t group = groupOf(packing, size.in);
    const std::int64_t rowGroup = rowGroupOf(packing, size.out);
    const std::int64_t groups = (size.in + group - 1) / group;
    const std::int64_t blocks = (size.out + rowGroup - 1) / rowGroup;
    PackedValues packed;
    packed.data.resize(static_cast<std::size_t>(size.count()));
    std::vector<float> scales(static_cast<std::size_t>(blocks * groups));
    // A scale may cover the whole matrix, so each row says its largest magnitudes first.
    std::vector<float> largest(static_cast<std::size_t>(size.out * groups));
    forRows(pool, size, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            largestOfGroups(group, rowsOf(values, size.in, row, row + 1),
                            rowsOf(std::span(largest), groups, row, row + 1));
        }
    });
    for (std::int64_t row = 0; row < size.out; ++row) {
        for (std::int64_t g = 0; g < groups; ++g) {
            float& scale = scales[static_cast<std::size_t>(row / rowGroup * groups + g)];
            scale = std::max(scale, largest[static_cast<std::size_t>(row * groups + g)]);
        }
    }
    std::ranges::transform(scales, scales.begin(), fp8Scale);
    forRows(pool, size, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            quantizeFp8Row(group, rowsOf(values, size.in, row, row + 1),
                           rowsOf(std::span<const float>(scales), groups, row / rowGroup, row / rowGroup + 1),
                           rowsOf(std::span(packed.data), size.in, row, row + 1));
        }
    });
    packed.scaleType = scaleTypeOf(packing, DType::F32);
    packed.scales = bytesOfScales(packed.scaleType, scales);
    return packed;
}

PackedValues packBlocks(WeightFormat format, const MatrixSize& size, std::span<const float> values,
                        base::ThreadPool& pool) {
    ValuePacker packer(format, size.count());
    forRows(pool, size, [&](std::int64_t begin, std::int64_t end) {
        packer.pack(begin * size.in, rowsOf(values, size.in, begin, end));
    });
    return packer.finish();
}

/// The type of a tensor in memory. BF16 stands for any type of scales.
DType typeInMemory(const StoredTensor& tensor, DType scaleType) {
    if (tensor.memoryType != DType::None) {
        return tensor.memoryType;
    }
    return tensor.dtype == DType::BF16 ? scaleType : tensor.dtype;
}

std::uint8_t* bytesAt(const std::vector<std::uint8_t>& bytes) {
    return const_cast<std::uint8_t*>(bytes.data()); // views are written through by nobody here
}

} // namespace

PackedValues packMatrix(const WeightPacking& packing, const MatrixSize& size, bool symmetric, DType dtype,
                        std::span<const float> values, base::ThreadPool& pool) {
    switch (packing.format) {
    case WeightFormat::Int4:
    case WeightFormat::Int8:
        return packIntegers(packing, size, symmetric, dtype, values, pool);
    case WeightFormat::Fp8:
        return packFp8(packing, size, values, pool);
    default:
        return packBlocks(packing.format, size, values, pool);
    }
}

IntegerRules integerRules(const WeightPacking& packing, const MatrixSize& size, bool symmetric, DType dtype) {
    return {packing.format == WeightFormat::Int8 ? 8 : 4, groupOf(packing, size.in), symmetric, dtype, packing.rule};
}

PackedValues packedIntegers(const WeightPacking& packing, const IntegerRules& rules,
                            std::span<const std::uint8_t> codes, std::span<const IntegerGroup> groups) {
    PackedValues packed;
    packed.data = packedCodes(rules.bits, codes);
    std::vector<float> scales;
    scales.reserve(groups.size());
    for (const IntegerGroup& group : groups) {
        scales.push_back(group.scale);
        if (packing.zeros) {
            packed.zeros.push_back(group.zero);
        }
    }
    packed.scaleType = scaleTypeOf(packing, rules.dtype);
    packed.scales = bytesOfScales(packed.scaleType, scales);
    return packed;
}

DType scaleTypeOf(const WeightPacking& packing, DType dtype) {
    switch (packing.format) {
    case WeightFormat::Int4:
    case WeightFormat::Int8:
        return dtype;
    case WeightFormat::Fp8:
        return DType::F32;
    default:
        return DType::U8;
    }
}

void checkPackable(const WeightPacking& packing, const std::string& weight, const MatrixSize& size,
                   std::string_view option) {
    const std::int64_t group = groupOf(packing, size.in);
    if (packing.format != WeightFormat::Fp8 && size.in % group != 0) {
        throw base::BadInput(fmt::format("{}: has {} inputs, which are no whole groups of {}; choose another group "
                                         "size, or leave it out with {}",
                                         weight, size.in, group, option));
    }
    storedTensors(packing, weight, std::vector<std::int64_t>{size.out, size.in});
}

kernels::WeightView viewOf(const WeightPacking& packing, const MatrixSize& size, const PackedValues& packed) {
    const std::vector<std::int64_t> shape{size.out, size.in};
    kernels::WeightView view;
    describePacked(packing, kernels::Shape(shape), size.out, view);
    view.scaleOffset = packed.scaleOffset;
    for (const StoredTensor& tensor : storedTensors(packing, "weight", shape)) {
        const std::vector<std::uint8_t>& bytes = packed.field(tensor.field);
        kernels::TensorView& field = view.field(tensor.field);
        field.data = bytesAt(bytes);
        field.shape = tensor.memoryShape;
        field.dtype = typeInMemory(tensor, packed.scaleType);
    }
    return view;
}

void expandMatrix(const kernels::WeightView& packed, std::span<float> values, base::ThreadPool& pool) {
    const MatrixSize size{packed.outFeatures(), packed.inFeatures()};
    const kernels::PackedMatrix matrix = kernels::packedMatrixOf(packed, 0);
    forRows(pool, size, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
            matrix.format->expand(matrix, row, 0, size.in, values.data() + row * size.in);
        }
    });
}

RoundingError packingError(const kernels::WeightView& packed, std::span<const float> values, base::ThreadPool& pool) {
    const MatrixSize size{packed.outFeatures(), packed.inFeatures()};
    const kernels::PackedMatrix matrix = kernels::packedMatrixOf(packed, 0);
    std::vector<RoundingError> ofRows(static_cast<std::size_t>(size.out));
    forRows(pool, size, [&](std::int64_t begin, std::int64_t end) {
        std::vector<float> expanded(static_cast<std::size_t>(size.in));
        for (std::int64_t row = begin; row < end; ++row) {
            matrix.format->expand(matrix, row, 0, size.in, expanded.data());
            ofRows[static_cast<std::size_t>(row)] = roundingError(rowsOf(values, size.in, row, row + 1), expanded);
        }
    });
    RoundingError sum;
    for (const RoundingError& row : ofRows) {
        sum.add(row);
    }
    return sum;
}

} // namespace vitrine::engine
