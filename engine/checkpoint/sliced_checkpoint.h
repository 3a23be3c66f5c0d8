// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Parts of the tensors of a checkpoint, as tensors of their own: what one of several ranks reads. Only the bytes of the
// parts are read, wherever they lie in the files.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

/// Of a dimension that consists of `blocks` equal blocks (gate, then up): [begin, begin + count) of each block.
struct DimSlice {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::int64_t blocks = 1;

    std::int64_t size() const { return count * blocks; }
    bool operator==(const DimSlice&) const = default;
};

/// One for each dimension of a tensor.
using TensorSlice = std::vector<DimSlice>;

/// A tensor as it is.
TensorSlice wholeSlice(const std::vector<std::int64_t>& shape);

/// A part of a tensor that has this shape, whatever dimensions of one element a file adds to it.
struct TensorPart {
    std::vector<std::int64_t> shape;
    TensorSlice slice;

    bool whole() const { return slice == wholeSlice(shape); }
};

/// Which part of a tensor of the base is in the slice; nothing: the tensor is not.
using PartOf = std::function<std::optional<TensorPart>(const TensorEntry& entry)>;

/// `what` stands in the identity of the files, so that equal texts mean equal parts.
std::shared_ptr<const Checkpoint> sliceCheckpoint(std::shared_ptr<const Checkpoint> base, const PartOf& partOf,
                                                  const std::string& what);

/// Where the bytes of a part lie in the bytes of the whole: runs of equal length, in order.
class SliceRuns {
public:
    /// `elementBytes`: of one element.
    SliceRuns(const std::vector<std::int64_t>& shape, const TensorSlice& slice, std::uint64_t elementBytes);

    std::uint64_t runBytes() const { return runBytes_; }
    std::uint64_t bytes() const { return runBytes_ * runs_; } ///< of the part
    /// Byte of the whole at which run `number` begins.
    std::uint64_t begin(std::uint64_t number) const;

private:
    struct Dim {
        std::uint64_t count = 1, blocks = 1;
        std::uint64_t begin = 0;     ///< bytes of the whole
        std::uint64_t step = 0;      ///< bytes from one index to the next
        std::uint64_t blockStep = 0; ///< bytes from one block to the next
    };
    std::vector<Dim> dims_; ///< outermost first; the last one's elements make up a run
    std::uint64_t runBytes_ = 0;
    std::uint64_t runs_ = 1;
};

} // namespace vitrine::engine
