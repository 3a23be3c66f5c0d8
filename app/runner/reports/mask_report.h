// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What `vitrine mask` does: builds the block mask of a program, and says how sparse it is.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/stop.h"
#include "engine/language/program_choice.h"

namespace vitrine::app {

struct MaskQuestion {
    engine::ProgramChoice mods; ///< batch, heads, queries, keys: the mask's shape
    std::string mask;
    std::int64_t blockSize = 128;
    std::string tensorsFile; ///< captured tensors, safetensors; empty: none
    std::string picture;     ///< PNG to write; empty: none
    std::string output;      ///< PyTorch's arrays as safetensors; empty: none
    int threads = 0;
    bool onGpu = false; ///< blocks that analysis leaves undecided are looked into by a GPU, if they are many
};

/// {blocks_full, blocks_partial, blocks_empty, block_sparsity, full_share, element_density, metadata_bytes,
/// build_seconds, density_seconds, block_mask_cached, backend, closed_form, batch, heads, ...}. Blocks are counted over
/// the batch entries and heads that differ.
nlohmann::json maskReport(const MaskQuestion& question, base::ProgressSink* progress, const base::StopToken& stop);

} // namespace vitrine::app
