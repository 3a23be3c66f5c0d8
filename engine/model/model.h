// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A decoder of any of the eight model families. It is built from a model's config and runs steps over ragged batches.
//
// A step takes the new tokens of some sequences: a whole prompt, a piece of a prompt, or one token each. It writes the
// keys and values of these tokens into the KV cache and computes the logits of the rows that the batch asks for.
//
// The activations, the scratch and the logits of a step lie in the step arena of the context. A dry run of the same
// step on Meta finds the size of that arena beforehand, so a step that does not fit throws OutOfMemory before its first
// kernel. The model remembers the size by the signature of the step: the numbers of tokens, sequences and rows, and the
// widths of the block tables.
//
// In the trace a step is one step scope with one layer scope for each layer. On a context that replays graphs, a
// decode step becomes a CUDA graph when a step of the same signature and the same addresses has run before. Later steps
// of that kind replay the graph, and the trace reports each of them as a replay of the captured step.
//
// A model that is divided among ranks (ModelOptions::shards) has a ModelRank on each of them, with its part of the
// weights and of every step. The rank of the model's context leads: it makes the inputs of a step and reads its
// results.
//
// A model belongs to the thread of its context and must not outlive the context.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cache/kv_cache.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/decoder.h"
#include "engine/model/expert_choices.h"
#include "engine/model/model_rank.h"
#include "engine/parallel/shard_plan.h"
#include "kernels/memory/memory.h"
#include "kernels/ops/sampling/sample.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

struct ModelOptions {
    bool dequantize = false;
    kernels::DType computeDType = kernels::DType::F32;         ///< F32 or BF16
    std::uint64_t seed = 0;                                    ///< of synthetic weights
    bool widen = false;                                        ///< dense weights narrower than float32 become float32
    kernels::WeightFormat pack = kernels::WeightFormat::Dense; ///< see LoadOptions
    /// How the ranks of the context divide the model. One rank: the context has all of it, and other ranks nothing.
    ParallelShape parallel;
};

struct StepGraph;
struct LaunchedStep;
struct StepInputs;
struct StepRunOptions;
class StepPrices;

/// Bytes of a model's weights, grouped by which tokens of a step read them.
struct WeightBytes {
    std::uint64_t shared = 0;       ///< read for every token: attention, norms, routers, dense MLPs; without the head
    std::uint64_t head = 0;         ///< of the product that gives the logits
    std::uint64_t embeddingRow = 0; ///< the row of the embedding that one token reads
    std::uint64_t expert = 0;       ///< one expert of one layer, biases included; 0: a model without experts
    std::int64_t moeLayers = 0;
};

/// How many experts the steps really read, counted from the choices of the routers.
struct ExpertUse {
    std::int64_t steps = 0;
    std::int64_t experts = 0; ///< different experts of a layer, summed over layers and steps
    std::int64_t tokens = 0;  ///< of the counted steps
};

/// Where the numbers of a step are first NaN or infinite.
struct BrokenPlace {
    static constexpr std::int32_t kNowhere = -2, kEmbedding = -1;
    std::int32_t layer = kNowhere; ///< or one of these
};

/// The new tokens of one sequence in a step.
struct StepSequence {
    int sequence = 0; ///< its number in the cache
    std::span<const std::int32_t> tokens;
    bool wantsLogits = true; ///< the step gives logits of its last tokens
    /// Tokens of the whole prompt while the prompt is read in pieces; 0: `tokens` are not such a piece. Dynamic rotary
    /// frequencies depend on the length of the sequence. Each piece uses the frequencies of the whole prompt, so the
    /// result is the same as without pieces.
    std::int64_t promptTokens = 0;
    std::int64_t firstPosition = 0; ///< of `tokens`, in step inputs without a cache: those of its prefix come before
    bool keep = true;               ///< see KvAppend
    std::int64_t logitTokens = 1;   ///< of how many last tokens the step gives logits; at most as many as there are
};

/// Neighbouring tokens of a step whose ids only the device knows, because a pending step samples them. The step ignores
/// the ids that StepSequence::tokens has in their places, but these must be valid ids.
struct CarriedIds {
    std::int64_t token = 0; ///< index of the first one among all tokens of the step
    std::int64_t count = 0;
    const std::int32_t* ids = nullptr; ///< in device memory
};

enum class StepLogits : std::uint8_t { Last, All };

struct StepBatch {
    /// Name of the step scope: "prefill", "decode", "mixed" for a step that does both, or "draft" for a draft model's.
    std::string_view name = "decode";
    std::int32_t index = 0; ///< step number in its phase
    bool repeats = true;    ///< similar steps will follow, so the trace keeps a template of this one
    std::vector<StepSequence> sequences;
    StepLogits logits = StepLogits::Last; ///< All: of every token, whatever wantsLogits says
    /// One entry for each row of logits. Empty: the step samples nothing.
    std::span<const kernels::SampleParameters> sampling;
    std::int32_t topLogprobs = 0;
    bool drawLogprobs = false; ///< whether StepOutput has them
    bool experts = false;      ///< the same
    /// Host memory (rows, vocab) that receives the logits, or null. On Meta nothing is written to it.
    float* logitsOut = nullptr;
    std::span<const CarriedIds> carried; ///< only for contexts that run ahead; read until launch() returns
    /// Device memory (rows) that receives a copy of the sampled ids, so that the next step can name them in `carried`;
    /// or null. Only for contexts that run ahead.
    std::int32_t* idsOut = nullptr;
    /// Receives the number of experts that the step reads, or null. Only for measurements: the step downloads the
    /// router's choice of every layer, which makes it slower. On Meta nothing is counted.
    ExpertUse* expertUse = nullptr;
    /// Receives the first layer whose output is not finite, or null. Only to find a fault: the step downloads the
    /// output of every layer. On Meta nothing is looked at.
    BrokenPlace* broken = nullptr;
};

/// Tensors of what a step gives the host: ids, logprobs, topIds, topLogprobs, drawLogprobs, experts; empty where it was
/// not asked for.
using SampledViews = std::array<kernels::TensorView, 6>;

/// How Model::launch starts a step.
enum class Launch : std::uint8_t {
    Graph,             ///< Replays a captured graph. The step is one that decodes, and every row is sampled.
    GraphOnPendingIds, ///< As Graph, but the token ids are those that the last launched step samples. Both steps have
                       ///< the same sequences in the same order. The ids in the batch are ignored.
    Ops, ///< Launches op by op a step of any kind. The cache is paged, all rows of logits are sampled (there may be
         ///< none), and the tensors fit into the step arena as it is. In the trace the step ends when its last op is
         ///< launched.
};

struct StepOutput {
    std::vector<std::int32_t> ids;    ///< (rows) when sampling
    std::vector<float> logprobs;      ///< (rows); 0 on Meta; NaN where a logit of the row is not finite
    std::vector<std::int32_t> topIds; ///< (rows, topLogprobs)
    std::vector<float> topLogprobs;   ///< (rows, topLogprobs)
    /// (rows, kernels::kDrawLogprobs): what Sample::drawLogprobs gives; 0 on Meta; empty unless asked for.
    std::vector<float> drawLogprobs;
    /// Of every token of the step, in its order; 0 on Meta; empty unless asked for, and of a model without experts.
    ExpertChoices experts;

    /// REQUIRES that they were asked for.
    float drawLogprob(std::size_t row, kernels::DrawLogprob which) const {
        return drawLogprobs[row * static_cast<std::size_t>(kernels::kDrawLogprobs) + static_cast<std::size_t>(which)];
    }
};

class Model {
public:
    /// Loads the weights inside a phase scope "load". Where the context kept the weights of an earlier run
    /// (LoadReport::kept), the model takes them over inside a phase scope "weights kept from the run before".
    /// `progress` may be null.
    Model(kernels::Context& context, const ModelSource& source, const ModelOptions& options,
          base::ProgressSink* progress);
    ~Model();
    Model(const Model&) = delete; // layers view its weights
    Model& operator=(const Model&) = delete;

    /// With the heads of keys and values that one rank has; all else is that of the whole model.
    const ModelConfig& config() const { return config_; }
    const ModelOptions& options() const { return options_; }
    /// Of the leading rank.
    const LoadReport& loadReport() const { return leader().weights().report(); }
    kernels::Context& context() { return context_; }
    const kernels::Context& context() const { return context_; }
    int ranks() const { return static_cast<int>(ranks_.size()); }
    const ModelRank& rank(int number) const { return *ranks_[static_cast<std::size_t>(number)]; }
    const ModelRank& leader() const { return *ranks_.front(); }
    // Of the leading rank:
    /// The layers in the order in which a token passes them.
    std::span<const DecoderLayer> layers() const { return leader().layers(); }
    /// All weights, each one once.
    std::span<const Parameter> parameters() const { return decoder().parameters(); }
    /// The layers and parameters with the embedding, the final norm and the head.
    const Decoder& decoder() const { return leader().decoder(); }
    /// Someone is about to write to the weights; see WeightStore::markChanged. Whoever has a KvCache that shares
    /// prefixes calls its forgetPrefixes() after each change.
    void markWeightsChanged() { ranks_.front()->weights().markChanged(); }
    /// See Decoder::setAdapter. Forgets the captured graphs and the sizes of steps. REQUIRES that no step is pending.
    void setAdapter(const std::string& weight, const kernels::AdapterView& adapter);
    /// See Decoder::setMerged; as setAdapter.
    void setMerged(const std::string& weight, const kernels::WeightView& merged, const kernels::AdapterView& adapter);
    /// See Decoder::replaceWeight; as setAdapter.
    void replaceWeight(const std::string& weight, const kernels::WeightView& replacement);

    /// Adds the pages that the step needs to the cache, runs the step and advances the cache. Throws OutOfMemory before
    /// the first kernel, Cancelled between layers (the sequences in the cache then keep their lengths), BadInput for a
    /// token id outside the vocabulary. REQUIRES that no step is pending.
    StepOutput step(const StepBatch& batch, KvCache& cache);

    /// What the last step of a plan added to memory while it ran.
    const kernels::StepMemory& lastStepMemory() const { return lastStepMemory_; }

    /// Runs a step without a cache. Every sequence begins at position 0 and attends to its own tokens of this step, as
    /// in the forward pass of training. StepSequence::sequence is ignored.
    StepOutput step(const StepBatch& batch);

    /// Compiles the kernels that `steps` will launch, so that the first steps need not wait for the compiler. The steps
    /// follow one another and start from an empty cache with these options. Their sequences are numbered from 0. The
    /// kernel library compiles on several threads, and the call returns when all kernels are there. Does nothing on a
    /// context that compiles no kernels. Reports progress "Compiling kernels"; `progress` may be null.
    void prepare(std::span<const StepBatch> steps, const KvCacheOptions& cache, base::ProgressSink* progress);
    /// Bytes of the step arena that the step `batch` would take over a cache with these options. The sequences are
    /// numbered from 0. The first one already has `before` tokens in the cache, the others have none. Allocates
    /// nothing. REQUIRES that such a cache could hold the tokens.
    std::uint64_t stepBytes(const StepBatch& batch, std::int64_t before, const KvCacheOptions& cache);
    /// The same for a step without a cache.
    std::uint64_t stepBytes(const StepBatch& batch);
    /// Launches a step, advances the cache and returns while the device works. At most two steps may be pending.
    /// Returns false when two are pending, when the step does not meet the conditions of `how` (see Launch), or when
    /// the context does not run ahead. Nothing was launched then, though the cache may have got pages; the caller uses
    /// step() instead. Throws what step() throws.
    bool launch(const StepBatch& batch, KvCache& cache, Launch how);
    /// Waits for the oldest pending step, reports its replay to the trace and returns its results. Throws DeviceFault.
    StepOutput finishLaunched();
    bool launchedAny() const { return !launched_.empty(); }
    /// Waits for all pending steps and drops their results.
    void dropLaunched() noexcept;
    /// Forgets the captured graphs. Needed where another model on this context has found no memory for a step: the
    /// arena of steps may lie elsewhere now. REQUIRES that no step is pending.
    void dropGraphs();
    /// Gives the arena of steps and the captured graphs back; the next step makes them again. REQUIRES that no step is
    /// pending.
    void giveBackSteps();

    /// Bytes of weights that the decode of one token of one sequence reads: all dense weights, expertsPerToken experts
    /// of each layer, one row of the embedding.
    std::uint64_t weightBytesPerToken() const;
    WeightBytes weightBytes() const;

private:
    ModelRank& lead() { return *ranks_.front(); }
    void loadRanks(const ModelSource& source, const std::shared_ptr<const ShardPlan>& plan,
                   base::ProgressSink* progress);
    void onEveryRank(const std::function<void(ModelRank&)>& work);
    std::unique_ptr<LaunchedStep> prepareStep(const StepBatch& batch, KvCache& cache) const;
    void requireNoneLaunched() const;
    void requireWhole(std::string_view what) const;
    void forgetSteps();
    static StepOutput runRank(ModelRank& rank, const LaunchedStep& step, const KvCache* cache,
                              const StepRunOptions& runOptions);
    StepOutput runOnRanks(LaunchedStep& step, KvCache* cache);
    StepOutput priceStep(LaunchedStep& step, KvCache& cache);
    StepOutput runOps(LaunchedStep& step, KvCache* cache, bool ahead);
    bool canBeGraph(const StepInputs& stepInputs) const;
    std::vector<std::int64_t> graphKey(const StepInputs& stepInputs, const KvCache& cache) const;
    StepGraph* graphOf(const StepInputs& stepInputs, const KvCache* cache);
    StepGraph* readyGraph(const StepInputs& stepInputs, const KvCache& cache);
    void replay(LaunchedStep& step, KvCache& cache, std::int64_t knownInputs);
    void wait(const LaunchedStep& step);
    void reserveResults(LaunchedStep& step, const SampledViews& results);
    void fetch(LaunchedStep& step);

    kernels::Context& context_;
    ModelConfig config_;
    ModelOptions options_;
    std::vector<std::unique_ptr<ModelRank>> ranks_; ///< the leading one first
    std::unique_ptr<StepPrices> stepPrices_;        ///< of a plan
    kernels::StepMemory lastStepMemory_;
    /// Graphs of decode steps, by the signature and by every address that the kernels use.
    std::map<std::vector<std::int64_t>, std::unique_ptr<StepGraph>> graphs_;
    std::int64_t graphUses_ = 0;
    std::deque<std::unique_ptr<LaunchedStep>> launched_; ///< oldest first
    std::array<kernels::Buffer, 2> resultSlots_;         ///< pinned memory; launched steps use them in turn
    std::size_t nextSlot_ = 0;
};

/// Tokens of one prefill step: `asked`, or a default where `asked` is 0. The default is 512 for the traits of a CPU, so
/// that activations stay in the CPU's caches, and 8192 for other devices.
std::int64_t prefillChunk(const kernels::DeviceTraits& traits, std::int64_t asked);

} // namespace vitrine::engine
