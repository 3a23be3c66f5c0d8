// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The weights of a model in one arena. The exact size of the arena is known before the first byte is read.
//
// Tensors keep their names and dtypes of the checkpoint, with three exceptions:
// - Experts that the checkpoint stores one by one (qwen3_moe) are stacked as "...mlp.experts.gate_up_proj" (the rows of
// gate, then those of up) and "...mlp.experts.down_proj".
// - A packed weight either stays packed, as the tensors of the checkpoint, or is expanded to BF16
// (LoadOptions::dequantize). The expanded tensor has the name of the weight and the shape (experts, out, in). Its
// packed form passes through one staging buffer of the category workspace.
// - "...self_attn.kv_b_proj.weight" of latent attention is expanded in any case.
//
// With LoadOptions::pack, dense linears are packed on the host while they load, a part of a tensor at a time. Their
// tensors have the names that a checkpoint of packed linears would have. Such weights are not kept between runs.
//
// With LoadOptions::widen, tensors of BF16 and F16 become float32; they pass through the staging buffer too.
//
// The weights of a synthetic model are filled from a seed. On Meta no bytes are read; the clock advances by the time
// of disk and bus, which overlap. A load reports its stages as spans on the lanes "Read" (disk), "Copy" (bus), "Expand"
// (packed to BF16), "Pack" (dense to packed) and "Fill" (synthetic).
//
// A context may keep state between runs (kernels/cuda/kept_state.h). Complete weights then stay in memory when the
// store is destroyed. The next store takes them over when it wants the same weights; otherwise it frees them before it
// loads its own.
//
// One thread allocates all weights, in the order of the checkpoint, whichever threads read them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop.h"
#include "engine/checkpoint/checkpoint.h"
#include "kernels/core/weight_view.h"
#include "kernels/memory/memory.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

struct RankShards;

struct LoadOptions {
    bool dequantize = false;
    bool widen = false;     ///< dense weights narrower than float32 become float32
    std::uint64_t seed = 0; ///< of synthetic weights
    /// The format that the linears of attention and dense MLPs of a dense model are packed to; Dense: none.
    kernels::WeightFormat pack = kernels::WeightFormat::Dense;
    /// What one of several ranks loads; outlives the load. Null: everything.
    const RankShards* shards = nullptr;
};

struct WeightLayout;
struct WeightPiece;

struct LoadReport {
    double seconds = 0;              ///< on the context's clock
    std::uint64_t bytesRead = 0;     ///< from disk; on Meta, what a device would read
    std::uint64_t residentBytes = 0; ///< of all weights
    bool kept = false; ///< the weights are those of an earlier run of this process, and nothing was loaded
};

class WeightStore {
public:
    /// Loads all weights, or takes kept ones over. Throws BadInput "FILE: TENSOR: what", OutOfMemory, Cancelled.
    /// `progress` may be null.
    WeightStore(kernels::Context& context, const ModelSource& source, const LoadOptions& options,
                base::ProgressSink* progress);
    ~WeightStore();
    WeightStore(const WeightStore&) = delete; // views point into its arena
    WeightStore& operator=(const WeightStore&) = delete;

    /// Whether a store made with these arguments would take over the weights that an earlier run left.
    static bool wouldKeep(kernels::Context& context, const ModelSource& source, const LoadOptions& options);

    bool has(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
    /// Throws Internal when there is no tensor of that name.
    const kernels::TensorView& get(std::string_view name) const;
    /// The weight of that name, packed or dense, as the store holds it. Throws Internal when there is none.
    kernels::WeightView weight(std::string_view name) const;

    const LoadReport& report() const { return report_; }

    /// Someone is about to write to the weights. They are then no longer those of the files, and no later store takes
    /// them over.
    void markChanged();

private:
    void load(const WeightLayout& layout, const ModelSource& source, const LoadOptions& options,
              base::ProgressSink* progress);
    void adopt(const WeightLayout& layout, kernels::KeptReservation& block);
    const kernels::Tensor& add(const WeightPiece& piece);

    kernels::Context& context_;
    std::string key_; ///< under which complete weights are kept for the next run; empty: they are not kept
    std::unique_ptr<kernels::Arena> arena_;
    std::vector<kernels::Tensor> owned_;
    std::map<std::string, kernels::TensorView, std::less<>> tensors_;
    std::map<std::string, kernels::WeightView, std::less<>> packed_; ///< by the name of the weight
    LoadReport report_;
};

/// Fills one tensor of a synthetic model with random values. The values are the same on every backend and for every way
/// of loading. `index` is the tensor's place in expectedTensors(config).
void fillSynthetic(kernels::Context& context, const TensorSpec& spec, const ModelConfig& config, std::uint32_t index,
                   std::uint64_t seed, const kernels::TensorView& out);

} // namespace vitrine::engine
