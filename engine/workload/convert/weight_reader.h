// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The weights of a checkpoint as floats, one matrix at a time, however they are stored.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/quant/matrix_packer.h"

namespace vitrine::engine {

/// The size of one matrix of a weight, and the number of its matrices: one, or one for each expert of a stack.
MatrixSize matrixOf(const PackableWeight& weight);
std::int64_t matricesOf(const PackableWeight& weight);

/// Reads with all threads of a pool. One thread may use it at a time. The source and the pool outlive it.
class WeightReader {
public:
    /// REQUIRES a source with files.
    WeightReader(const ModelSource& source, base::ThreadPool& pool);

    /// Whether the files have the dense tensor `name` itself, with the bytes that a model of the same form has.
    bool storesAsIs(const std::string& name) const;
    /// The tensor of the files that is called so. Throws Internal when there is none.
    const Checkpoint::Location& location(const std::string& name) const;
    /// The type of the weight: that of its dense values, BF16 of a packed one.
    kernels::DType typeOf(const std::string& name) const;
    /// Bytes of all tensors of the weight in the files. One expert of a stack has its share.
    std::uint64_t storedBytes(const PackableWeight& weight) const;

    /// The values (out, in) of a weight of shape (out, in), or of one matrix of a stack (experts, out, in). Throws
    /// BadInput "FILE: TENSOR: what" when the files are damaged.
    std::vector<float> matrix(const PackableWeight& weight, std::int64_t expert);

private:
    /// Where the values of a dense matrix are in a file.
    struct DensePlace {
        const Checkpoint::Location* location = nullptr;
        std::int64_t first = 0; ///< element
        std::int64_t count = 0;
        bool transposed = false; ///< stored (in, out)
    };
    DensePlace densePlace(const PackableWeight& weight, std::int64_t expert) const;
    std::vector<float> dense(const PackableWeight& weight, std::int64_t expert);
    std::vector<float> unpacked(const WeightPacking& packing, const PackableWeight& weight, std::int64_t expert);
    std::vector<std::uint8_t> inMemory(const WeightPacking& packing, const StoredTensor& tensor,
                                       const PackableWeight& weight, std::int64_t expert, kernels::DType& dtype);

    const ModelSource& source_;
    base::ThreadPool& pool_;
};

} // namespace vitrine::engine
