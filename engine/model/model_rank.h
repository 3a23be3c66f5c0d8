// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What one rank of a model has: its part of the weights, the layers that view it, and the sizes of its steps. A model
// alone on a device has one rank, which is all of it.
//
// A rank belongs to the thread of its context, and so do all calls that take it through ops; reading what the ranks are
// alike in (config, options) is free.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/cache/kv_cache.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/decoder.h"
#include "engine/model/weights.h"
#include "kernels/core/communicator.h"
#include "kernels/memory/memory.h"

namespace vitrine::engine {

struct ModelOptions;
struct RankShards;
struct StepInputs;

class ModelRank {
public:
    /// Loads the rank's weights inside a phase scope "load". `shards`: its part of the model; null: all of it. `leads`:
    /// it reads the results of steps. Throws what WeightStore throws. `progress` may be null.
    ModelRank(kernels::Context& context, const ModelSource& source, const ModelConfig& config,
              const ModelOptions& options, std::shared_ptr<const RankShards> shards, bool leads,
              base::ProgressSink* progress);
    ~ModelRank();
    ModelRank(const ModelRank&) = delete; // layers view its weights
    ModelRank& operator=(const ModelRank&) = delete;

    kernels::Context& context() const { return context_; }
    const ModelConfig& config() const { return config_; }
    const ModelOptions& options() const { return options_; }
    const Decoder& decoder() const { return *decoder_; }
    Decoder& decoder() { return *decoder_; }
    std::span<const DecoderLayer> layers() const { return decoder_->layers(); }
    WeightStore& weights() { return *weights_; }
    const WeightStore& weights() const { return *weights_; }
    /// Null where the rank has the whole model.
    const RankShards* shards() const { return shards_.get(); }
    /// The ranks that have the other parts; null where there are none.
    kernels::Communicator* communicator() const;
    int number() const { return communicator() == nullptr ? 0 : communicator()->rank(); }
    bool leads() const { return leads_; }
    /// Its place among the ranks of a KvCache, which the leading one begins.
    int cachePlace() const { return leads_ ? 0 : number(); }

    /// Bytes of the step arena that the step takes. The kernels of a step of a new kind are compiled meanwhile.
    std::uint64_t arenaBytes(const StepInputs& stepInputs, const KvCache* cache);
    /// The same where it is known already.
    std::optional<std::uint64_t> knownArenaBytes(const StepInputs& stepInputs) const;
    /// The same without remembering it. `compile`: what it would launch is compiled.
    std::uint64_t dryRun(const StepInputs& stepInputs, const KvCache* cache, bool compile);
    /// A Meta context that allocates as the rank's own does.
    kernels::Context& dryContext();
    /// Where equal layers need not run, the kind of each.
    const std::vector<int>& kindsOfLayers();
    /// Its ops are others now.
    void forgetSteps();

private:
    RopeValues makeRope();

    kernels::Context& context_;
    const ModelConfig& config_; ///< of the model that owns the rank, as `options_` is
    const ModelOptions& options_;
    std::shared_ptr<const RankShards> shards_;
    bool leads_;
    std::unique_ptr<WeightStore> weights_;
    std::unique_ptr<Decoder> decoder_;
    std::unique_ptr<kernels::Arena> ropeArena_;
    /// (ropeDim / 2) F32; empty for dynamic frequencies, which change with the length.
    kernels::Tensor ropeFrequencies_;
    std::unique_ptr<kernels::Communicator> dryRanks_;
    std::unique_ptr<kernels::Context> dryContext_;
    kernels::Buffer dryGap_;
    std::map<std::vector<std::int64_t>, std::uint64_t> arenaSizes_; ///< by the signature of the step
    std::vector<int> layerKinds_;                                   ///< empty until a plan asks
};

} // namespace vitrine::engine
