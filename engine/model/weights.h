// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The weights of a model in one arena that is sized exactly before the first byte is read.
//
// Tensors keep the dtype they are stored in and their checkpoint names; per-expert matrices (qwen3_moe) are stacked
// under the name "...mlp.experts.gate_up_proj" (rows gate then up) and "...mlp.experts.down_proj". Packed weights stay
// as the tensors that the checkpoint has, or are expanded to BF16 under the name of the weight as (experts, out, in);
// their packed form then passes through one staging buffer of category workspace. Synthetic models are filled from a
// seed. Meta materialises nothing; its clock is charged with disk and bus, which overlap. Load stages are reported as
// spans on the lanes "Read" (disk), "Copy" (bus), "Expand" (packed to BF16) and "Fill" (synthetic). Where the context
// keeps state between runs (kernels/cuda/kept_state.h), complete weights stay there when the store goes, and the next
// store of the same files takes them over; others are freed before its own are loaded. All weights are allocated by one
// thread in checkpoint order, whatever reads them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop.h"
#include "engine/checkpoint/checkpoint.h"
#include "kernels/context/context.h"
#include "kernels/core/weight_view.h"
#include "kernels/memory/memory.h"

namespace vitrine::engine {

struct LoadOptions {
    bool dequantize = false;
    std::uint64_t seed = 0; ///< of synthetic weights
};

struct WeightPiece;
struct WeightLayout;

struct LoadReport {
    double seconds = 0;              ///< on the context's clock
    std::uint64_t bytesRead = 0;     ///< from disk; on Meta what would be read
    std::uint64_t residentBytes = 0; ///< of all weights
    bool kept = false;               ///< nothing was loaded: they are those of an earlier run of this process
};

class WeightStore {
public:
    /// Loads everything. Throws BadInput "FILE: TENSOR: what", OutOfMemory, Cancelled. `progress` may be null.
    WeightStore(kernels::Context& context, const ModelSource& source, const LoadOptions& options,
                base::ProgressSink* progress);
    ~WeightStore();
    WeightStore(const WeightStore&) = delete; // views point into its arena
    WeightStore& operator=(const WeightStore&) = delete;

    /// Whether a store of this source would take weights over that an earlier run left.
    static bool wouldKeep(kernels::Context& context, const ModelSource& source, const LoadOptions& options);

    bool has(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
    /// Throws Internal when there is no such tensor.
    const kernels::TensorView& get(std::string_view name) const;
    /// The weight of that name as it is stored: packed, or the dense tensor. Throws Internal when there is none.
    kernels::WeightView weight(std::string_view name) const;

    const LoadReport& report() const { return report_; }

private:
    void load(const WeightLayout& layout, const ModelSource& source, const LoadOptions& options,
              base::ProgressSink* progress);
    void adopt(const WeightLayout& layout, kernels::KeptReservation& block);
    const kernels::Tensor& add(const WeightPiece& piece);

    kernels::Context& context_;
    std::string key_; ///< of the weights while they are complete, to keep them; empty: nothing is kept
    std::unique_ptr<kernels::Arena> arena_;
    std::vector<kernels::Tensor> owned_;
    std::map<std::string, kernels::TensorView, std::less<>> tensors_;
    std::map<std::string, kernels::WeightView, std::less<>> packed_; ///< by the name of the weight
    LoadReport report_;
};

/// Fills one tensor of a synthetic model: the same values on every backend and for every way of loading.
/// `index` is its place in expectedTensors(config).
void fillSynthetic(kernels::Context& context, const TensorSpec& spec, const ModelConfig& config, std::uint32_t index,
                   std::uint64_t seed, const kernels::TensorView& out);

} // namespace vitrine::engine
