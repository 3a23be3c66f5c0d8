// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A decoder of any of the seven families, built from its config and driven in steps over ragged batches.
//
// A step takes the new tokens of some sequences (a prompt, a piece of one, or one token each), writes their keys and
// values into the cache, and computes logits of the rows asked for. Its activations, scratch and logits live in the
// context's step arena, whose size a dry run of the same step on Meta has found (kept by the step's signature: tokens,
// sequences, rows, block table widths): out of memory is thrown before the first kernel.
// One step is one tracer step with a layer scope for each layer.
// Where the context replays graphs, a decode step that was seen before (the same signature and addresses) is replayed
// as a graph, and told in the trace as a replay of the step that was captured. A model belongs to the thread of its
// context and must not outlive it.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cache/kv_cache.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/decoder.h"
#include "engine/model/weights.h"
#include "kernels/context/context.h"
#include "kernels/ops/sampling/sample.h"

namespace vitrine::engine {

struct ModelOptions {
    bool dequantize = false;
    kernels::DType computeDType = kernels::DType::F32; ///< F32 or BF16
    std::uint64_t seed = 0;                            ///< of synthetic weights
};

struct StepGraph;
struct LaunchedStep;
struct StepInputs;

/// Bytes of a model's weights by who reads them.
struct WeightBytes {
    std::uint64_t shared = 0;       ///< what every token reads but the head: attention, norms, routers, dense MLPs
    std::uint64_t head = 0;         ///< of the last product
    std::uint64_t embeddingRow = 0; ///< what one token reads of the embedding
    std::uint64_t expert = 0;       ///< one expert of one layer, with its biases; 0: there are none
    std::int64_t moeLayers = 0;
};

/// Which experts steps really read: counted from what the router chose.
struct ExpertUse {
    std::int64_t steps = 0;
    std::int64_t experts = 0; ///< different ones of a layer, summed over layers and steps
    std::int64_t tokens = 0;  ///< of the counted steps
};

/// New tokens of one sequence of the cache.
struct StepSequence {
    int sequence = 0;
    std::span<const std::int32_t> tokens;
    bool wantsLogits = true; ///< of its last token
    /// Tokens of the whole prompt while it is fed in pieces, 0: these are all there are. Rotary frequencies that follow
    /// the length (dynamic) are those of the whole prompt in each piece, as if it had been fed at once.
    std::int64_t promptTokens = 0;
    bool keep = true; ///< see KvAppend
};

/// Neighbouring tokens of a step whose ids the device holds: those that a step under way samples. The host's ids in
/// their places are not looked at, but must be ids.
struct CarriedIds {
    std::int64_t token = 0; ///< the first of them, counted over the whole step
    std::int64_t count = 0;
    const std::int32_t* ids = nullptr; ///< in device memory
};

enum class StepLogits : std::uint8_t { Last, All };

struct StepBatch {
    std::string_view name = "decode"; ///< of the step scope: "prefill", "decode", or "mixed" for both
    std::int32_t index = 0;           ///< step number in its phase
    bool repeats = true;              ///< steps like it will come: the trace keeps a template of it
    std::vector<StepSequence> sequences;
    StepLogits logits = StepLogits::Last; ///< All: every token of every sequence, whatever wantsLogits says
    /// One for each row of logits, or empty: no sampling.
    std::span<const kernels::SampleParameters> sampling;
    std::int32_t topLogprobs = 0;
    /// Where logits (rows, vocab) are copied to, or null. Untouched on Meta.
    float* logitsOut = nullptr;
    std::span<const CarriedIds> carried; ///< contexts that run ahead only; looked at while the step is launched
    /// Contexts that run ahead: the sampled ids are copied to this device memory (rows) as well, for the next step's
    /// `carried`; or null.
    std::int32_t* idsOut = nullptr;
    /// Counts the step's experts here, or null. Measurements only: the step fetches the choice of every layer, so that
    /// it is slower. Nothing is counted on Meta.
    ExpertUse* expertUse = nullptr;
};

/// How a step is launched ahead.
enum class Launch : std::uint8_t {
    Graph,             ///< a decode step (one token a sequence, every row sampled) whose graph was captured before
    GraphOnPendingIds, ///< the same; its tokens are what the step launched before it samples, for the same sequences in
                       ///< the same order, and those of the batch are not looked at
    Ops, ///< op by op: a step of any kind over a paged cache whose rows of logits are all sampled (there may be none)
         ///< and whose tensors fit into what steps before it needed. In the trace it lasts until it is launched
};

struct StepOutput {
    std::vector<std::int32_t> ids;    ///< (rows) when sampling
    std::vector<float> logprobs;      ///< (rows); 0 on Meta
    std::vector<std::int32_t> topIds; ///< (rows, topLogprobs)
    std::vector<float> topLogprobs;   ///< (rows, topLogprobs)
};

class Model {
public:
    /// Loads the weights inside a phase scope "load"; weights that the context kept (LoadReport::kept) come to life in
    /// one that is named "weights kept from the run before". `progress` may be null.
    Model(kernels::Context& context, const ModelSource& source, const ModelOptions& options,
          base::ProgressSink* progress);
    ~Model();
    Model(const Model&) = delete; // layers view its weights
    Model& operator=(const Model&) = delete;

    const ModelConfig& config() const { return config_; }
    const ModelOptions& options() const { return options_; }
    const LoadReport& loadReport() const { return weights_->report(); }
    kernels::Context& context() { return context_; }
    /// Its layers, from the embedding to the head.
    std::span<const DecoderLayer> layers() const { return decoder_->layers(); }
    /// Every weight once.
    std::span<const Parameter> parameters() const { return decoder_->parameters(); }
    /// All of them, and what stands before and behind the layers.
    const Decoder& decoder() const { return *decoder_; }

    /// Runs one step and advances the cache, whose pages are added before it. Throws OutOfMemory before the first
    /// kernel, Cancelled between layers (the cache then keeps its length), BadInput for a token id outside the
    /// vocabulary. REQUIRES that no launched step is under way.
    StepOutput step(const StepBatch& batch, KvCache& cache);

    /// The same without a cache: every sequence begins at position 0 and attends to its own tokens of this step, as in
    /// the forward pass of training. Numbers of sequences are not looked at.
    StepOutput step(const StepBatch& batch);

    /// Where kernels are compiled: compiles what `steps`, taken one after the other from an empty cache of this kind,
    /// will launch, all at once on the library's threads; elsewhere nothing. Sequences are numbered from 0. So the
    /// first steps need not wait. Reports progress "Compiling kernels"; `progress` may be null.
    void prepare(std::span<const StepBatch> steps, const KvCacheOptions& cache, base::ProgressSink* progress);
    /// What the activations of a step would take: of `batch`, whose sequences are numbered from 0, over a cache of this
    /// kind in which the first of them has `behind` tokens already (the longest counts). Nothing is allocated. REQUIRES
    /// that the cache could hold them.
    std::uint64_t stepBytes(const StepBatch& batch, std::int64_t behind, const KvCacheOptions& cache);
    /// The same of a step without a cache.
    std::uint64_t stepBytes(const StepBatch& batch);
    /// Launches a step and returns while the device works; the cache advances. False, and nothing happened but that the
    /// cache may have more room, where the step cannot be launched so (see Launch) or the context runs nothing ahead:
    /// use step(). At most two steps may be under way. Throws as step() does.
    bool launch(const StepBatch& batch, KvCache& cache, Launch how);
    /// Waits for the oldest launched step and writes its trace. Throws DeviceFault.
    StepOutput finishLaunched();
    bool launchedAny() const { return !launched_.empty(); }
    /// Waits for what was launched and forgets it.
    void dropLaunched() noexcept;

    /// Weight bytes that one decoded token of one sequence reads: all dense weights, expertsPerToken of the experts,
    /// one row of the embedding.
    std::uint64_t weightBytesPerToken() const;
    WeightBytes weightBytes() const;

private:
    friend class StepRunner;
    friend struct StepInputs;

    std::uint64_t arenaBytes(const StepInputs& stepInputs, const KvCache* cache);
    kernels::Context& dryContext();
    std::uint64_t dryRun(const StepInputs& stepInputs, const KvCache* cache, bool compile);
    std::unique_ptr<LaunchedStep> prepareStep(const StepBatch& batch, KvCache& cache) const;
    void requireNoneLaunched() const;
    StepOutput runOps(LaunchedStep& step, KvCache* cache, bool ahead);
    bool canBeGraph(const StepInputs& stepInputs) const;
    std::vector<std::int64_t> graphKey(const StepInputs& stepInputs, const KvCache& cache) const;
    StepGraph* graphOf(const StepInputs& stepInputs, const KvCache* cache);
    StepGraph* readyGraph(const StepInputs& stepInputs, const KvCache& cache) const;
    void replay(LaunchedStep& step, KvCache& cache, std::int64_t knownInputs);
    void wait(const LaunchedStep& step);
    void reserveResults(LaunchedStep& step, const std::array<kernels::TensorView, 4>& results);
    void fetch(LaunchedStep& step);

    kernels::Context& context_;
    ModelConfig config_;
    ModelOptions options_;
    std::unique_ptr<WeightStore> weights_;
    std::unique_ptr<Decoder> decoder_;
    std::unique_ptr<kernels::Arena> ropeArena_;
    kernels::Tensor ropeFrequencies_; ///< (headDim / 2) F32; empty when they change with the length (dynamic)
    float ropeScale_ = 1;
    float embeddingScale_ = 1;
    std::unique_ptr<kernels::Context> dryContext_;
    kernels::Buffer dryGap_;
    std::map<std::vector<std::int64_t>, std::uint64_t> arenaSizes_; ///< by step signature
    /// Decode steps by signature and by every address that the kernels were given.
    std::map<std::vector<std::int64_t>, std::unique_ptr<StepGraph>> graphs_;
    std::deque<std::unique_ptr<LaunchedStep>> launched_; ///< oldest first
    std::array<kernels::Buffer, 2> resultSlots_;         ///< pinned; launched steps take them in turn
    std::size_t nextSlot_ = 0;
};

/// Tokens of one prefill step. `asked` 0 leaves the choice: 512 where the traits are a CPU's, so that activations stay
/// in the caches; 8192 elsewhere.
std::int64_t prefillChunk(const kernels::DeviceTraits& traits, std::int64_t asked);

} // namespace vitrine::engine
