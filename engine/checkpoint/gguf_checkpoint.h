// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The tensors of a GGUF file as a checkpoint: with the names, shapes and orders of rows that files of Hugging Face
// have. A weight of blocks becomes tensors of codes and scales (engine/quant/gguf.h), which are made from the blocks
// while they are read. What the engine multiplies as a dense matrix only (embedding, head, routers) is dequantized:
// embedding and head to F16, the rest to F32.

#include <memory>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/gguf_file.h"

namespace vitrine::engine {

/// `config` says which tensors the model has. Throws BadInput "FILE: TENSOR: what" when one is missing or has another
/// shape, and Unsupported for types that are not read.
std::shared_ptr<const Checkpoint> openGgufCheckpoint(const std::shared_ptr<const GgufFile>& file,
                                                     const ModelConfig& config);

} // namespace vitrine::engine
