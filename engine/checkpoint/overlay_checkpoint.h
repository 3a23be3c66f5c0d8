// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A checkpoint some of whose tensors are others than in its files: what an adapter stores whole takes the place of what
// the base model has. Values are made when they are read, a piece at a time; a plan reads none.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

/// Gives `count` rows from `first` on as floats. A row is what lies along the last dimension; of a vector one element.
/// Called from several threads.
using RowMaker = std::function<void(std::int64_t first, std::int64_t count, std::span<float> out)>;

/// A tensor of floats by its name in the model.
struct OverlaidTensor {
    std::string name;
    kernels::DType dtype = kernels::DType::F32; ///< F32, BF16 or F16
    std::vector<std::int64_t> shape;
    RowMaker rows;
};

/// The rows of a tensor of a file. The file outlives the maker.
RowMaker rowsOf(const SafetensorsFile& file, const TensorEntry& entry);

/// Whether both give the same bytes. The types and shapes are equal.
bool equalValues(const OverlaidTensor& a, const OverlaidTensor& b);

/// `path` stands in messages about the tensors. Equal texts of `identity` mean equal values.
std::shared_ptr<const Checkpoint> overlayCheckpoint(std::shared_ptr<const Checkpoint> base,
                                                    std::vector<OverlaidTensor> tensors, std::string path,
                                                    std::string identity);

} // namespace vitrine::engine
