// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One matrix of floats to a packed weight of any format and back, on the threads of a pool. What comes out does not
// depend on the number of threads.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/thread_pool.h"
#include "engine/quant/integer_quantizer.h"
#include "engine/quant/packing.h"
#include "engine/quant/rounding_error.h"
#include "engine/quant/value_packer.h"

namespace vitrine::engine {

/// A matrix (out, in).
struct MatrixSize {
    std::int64_t out = 0;
    std::int64_t in = 0;

    std::int64_t count() const { return out * in; }
};

/// Packs `values`, row by row, with the rounding rule of the format: integer_quantizer.h, fp8_quantizer.h, mxfp4.h or
/// nf4_format.h. `dtype` is the type of the weight, which integers are rounded in. `symmetric` says that zeros, where
/// files have them, are the middle code. REQUIRES sizes that checkPackable() lets pass. Throws BadInput for values that
/// the format cannot hold.
PackedValues packMatrix(const WeightPacking& packing, const MatrixSize& size, bool symmetric, kernels::DType dtype,
                        std::span<const float> values, base::ThreadPool& pool);

/// How a matrix is rounded to integers, and its packed values from the codes, a byte each, and the groups of its rows.
IntegerRules integerRules(const WeightPacking& packing, const MatrixSize& size, bool symmetric, kernels::DType dtype);
PackedValues packedIntegers(const WeightPacking& packing, const IntegerRules& rules,
                            std::span<const std::uint8_t> codes, std::span<const IntegerGroup> groups);

/// The type of the scales that packMatrix() makes of a weight of type `dtype`.
kernels::DType scaleTypeOf(const WeightPacking& packing, kernels::DType dtype);

/// Throws BadInput "NAME: what to do" when the weight's inputs make no whole groups of such a packing. `option` is the
/// one that leaves the weight out.
void checkPackable(const WeightPacking& packing, const std::string& weight, const MatrixSize& size,
                   std::string_view option = "ignore");

/// A view of packed values, which must outlive it.
kernels::WeightView viewOf(const WeightPacking& packing, const MatrixSize& size, const PackedValues& packed);

/// The values of a packed matrix, which has no stack, as float32.
void expandMatrix(const kernels::WeightView& packed, std::span<float> values, base::ThreadPool& pool);

/// What packed values differ from those that they were made of.
RoundingError packingError(const kernels::WeightView& packed, std::span<const float> values, base::ThreadPool& pool);

} // namespace vitrine::engine
