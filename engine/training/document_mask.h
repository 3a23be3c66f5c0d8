// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The attention masks of the backward pass. It takes the documents of a batch as one long sequence, so a mask of
// several documents also says that no token sees another document.

#include <cstdint>
#include <map>
#include <memory>

#include "engine/model/decoder_layer.h"

namespace vitrine::engine {

/// Makes the programs once for all steps. Not thread-safe.
class DocumentMasks {
public:
    /// The mask of `layer` for tokens that lie one after the other. `starts` (tokens) I32: the first token of each
    /// token's document; empty: there is one document. The result is valid as long as this object.
    kernels::BoundProgram of(const DecoderLayer& layer, const kernels::TensorView& starts);

private:
    std::map<std::int64_t, std::unique_ptr<kernels::KnownProgram>> programs_; ///< by window
};

} // namespace vitrine::engine
