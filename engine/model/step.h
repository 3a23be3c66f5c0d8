// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One step of a model: its arrays on the host (StepInputs) and its ops (StepRunner). A dry run and a real run use the
// same code.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/model/layer_forward.h"
#include "engine/model/model.h"
#include "engine/model/op_runner.h"
#include "kernels/context/context.h"
#include "kernels/cuda/cuda_context.h"

namespace vitrine::engine {

/// Tokens that share one table of rotary frequencies.
struct RopeSpan {
    std::int64_t begin = 0, end = 0;
    std::int64_t offset = 0; ///< index of its first frequency in StepInputs::frequencies
    float scale = 1;
};

/// Whether a step's arrays are filled. Where nothing is computed their sizes are enough.
enum class InputValues : std::uint8_t { Filled, OnlySizes };
InputValues inputValues(const kernels::Context& context);

/// The arrays that the device needs for a step. The host makes them after the pages of the cache are reserved. Without
/// a cache (null) every sequence begins at its StepSequence::firstPosition.
struct StepInputs {
    /// With OnlySizes, `inputs` stays empty and token ids are not looked at.
    StepInputs(const Model& model, const StepBatch& batch, const KvCache* cache, InputValues values);

    /// Where one array lies in `inputs`, in elements.
    struct Slice {
        std::int64_t offset = 0, count = 0;
    };
    struct GroupSlices {
        Slice pages, first, lengths, firstAfter, lengthsAfter;
        std::int64_t columns = 0;
        std::int64_t totalTokens = 0;
    };

    const StepBatch& batch;
    std::int64_t tokens = 0;
    std::int64_t rows = 0; ///< of logits
    /// Not 0: tempered log-probabilities (Sample::drawLogprobs) are made at it by the op that training makes them with,
    /// so that both are equal to the bit where rows are exact.
    float trainerTemperature = 0;
    std::vector<KvAppend> appends;
    std::vector<std::int32_t> inputs; ///< all I32 arrays of the step, uploaded in one copy
    std::int64_t inputCount = 0;      ///< elements of them all
    Slice ids, positions, sequence, offsets, rowIds;
    Slice zeros;                     ///< one for each sequence; empty with a cache
    Slice sampling;                  ///< packed SampleParameters; empty when every row is plainly greedy
    std::vector<GroupSlices> groups; ///< of the cache; empty without one
    std::vector<RopeSpan> ropeSpans;
    std::vector<float> frequencies; ///< of all spans; empty when the spans use the model's own table

    /// All numbers that the sizes of the step's allocations depend on.
    std::vector<std::int64_t> signature() const;
    /// Whether steps with this signature do the same with other values, so that a graph of one serves them all: steps
    /// that decode, and those of a draft model. Their kernels take the lengths of sequences and the ends of their rows
    /// from device memory. So it does not matter how the tokens are divided among the sequences.
    bool repeatsAlike() const;
    /// Whether nothing but sampled tokens is wanted of the step.
    bool onlySamples() const;
    /// Whether the largest logit of each row is all that is wanted.
    bool onlyBest() const;

private:
    Slice append(const std::vector<std::int32_t>& values);
    Slice appendSize(std::int64_t count);
    void fill(const Model& model, const KvCache* cache);
    void addSizes(const KvCache* cache);
    void addRope(const Model& model, const KvCache* cache);
};

/// One of the step's arrays inside the uploaded `inputs`.
kernels::TensorView inputOf(const kernels::TensorView& inputs, const StepInputs::Slice& slice);

/// The step's tokens as the layers take them. `frequencies` are StepInputs::frequencies on the device, or empty.
LayerTokens layerTokens(const ModelRank& rank, const StepInputs& stepInputs, const kernels::TensorView& inputs,
                        const kernels::TensorView& frequencies);

/// What the host gets of the step's packed experts (StepRunner), still without its bytes.
ExpertChoices choicesIn(const kernels::TensorView& packed);

/// The ids that a step samples where nothing is computed.
void sampleOnMeta(const StepInputs& stepInputs, std::int64_t vocab, std::vector<std::int32_t>& ids);

/// Copies the ids of StepBatch::carried on the device into the step's uploaded inputs.
void copyCarried(kernels::Context& context, const StepInputs& stepInputs, const kernels::TensorView& inputs);

/// The kernels of a decode step as a CUDA graph, from the embedding to the sampled ids. Steps with the same signature
/// and the same step arena have their tensors at the same addresses. So a later step of that kind uploads its inputs
/// and replays the graph. It allocates no tensors. The statistics of memory and the trace count for it what the
/// captured step allocated.
struct StepGraph {
    std::int64_t lastUse = 0; ///< the number of the last step that ran or replayed it
    bool known = false;       ///< a step of this kind has run, so its kernels are compiled and loaded
    kernels::CudaGraph graph;
    kernels::StepMemory memory;                ///< of the captured step
    std::optional<std::uint32_t> stepTemplate; ///< of the last step of this kind whose ops were launched one by one
    kernels::TensorView inputs;
    /// All but the experts are empty when the step samples nothing.
    SampledViews sampled;
};

/// A step from the making of its inputs until its results are read.
struct LaunchedStep {
    LaunchedStep(const Model& model, const StepBatch& stepBatch, const KvCache* cache, InputValues values)
        : batch(stepBatch), sampling(stepBatch.sampling.begin(), stepBatch.sampling.end()),
          stepInputs(model, batch, cache, values) {
        batch.sampling = sampling;
    }
    ~LaunchedStep() = default;
    LaunchedStep(const LaunchedStep&) = delete; // the batch views the sampling beside it
    LaunchedStep& operator=(const LaunchedStep&) = delete;

    StepBatch batch;
    std::vector<kernels::SampleParameters> sampling;
    StepInputs stepInputs;
    SampledViews views;           ///< on the device
    StepGraph* graph = nullptr;   ///< null: its ops were launched one by one, without a graph
    kernels::StepReplay replay;   ///< of the graph
    std::byte* results = nullptr; ///< pinned memory: what `views` has, one after the other
    kernels::Mark fetched;        ///< after the copies into `results`
};

/// Called once with the tensors of the results, which exist until the call returns.
using OnSampled = std::function<void(const SampledViews& results)>;

/// What StepRunner does with the ops of a step and with its results. By default it runs the ops one by one, waits and
/// reads the sampled values.
struct StepRunOptions {
    /// Not null: the kernels of the ops are compiled here; used with a Meta context.
    kernels::Prefetch* compile = nullptr;
    StepGraph* capture = nullptr; ///< not null: the ops are captured as this graph, which is then replayed
    /// Where equal layers need not run, the kind of each (layerKinds()); empty: every layer runs.
    std::vector<int> layerKinds;
    OnSampled fetchLater; ///< called instead of reading the sampled values; run() then returns an empty output
};

/// Runs the ops of a step on a context: the rank's own, or a Meta context, which only finds the sizes. With a cache,
/// attention reads the keys and values of the cache. Without one (null), it reads the keys and values that this step
/// computes, as the forward pass of training does.
class StepRunner {
public:
    StepRunner(const ModelRank& rank, const StepInputs& stepInputs, const KvCache* cache, kernels::Context& context,
               const StepRunOptions& options)
        : rank_(rank), stepInputs_(stepInputs), cache_(cache), context_(context),
          runner_(context, context.memory().step(), rank.options().computeDType, options.compile,
                  rank.shards() == nullptr ? nullptr : context.communicator()),
          options_(options) {}

    StepOutput run();

private:
    void upload(const void* host, const kernels::TensorView& device);

    kernels::TensorView input(const StepInputs::Slice& slice) const;
    kernels::KvView kvView(int layer) const;
    void runLayers(const kernels::TensorView& x);
    void runLayer(int index, const LayerTokens& tokens, const kernels::TensorView& x, const RouterObserver* observer);
    LayerCache layerCache(int index) const;
    kernels::DType newKeyType(const kernels::KvView& view) const;
    bool writesBeforeAttention(int index) const;
    kernels::KvView viewAfter(int index, kernels::KvView view) const;
    void lookAt(const kernels::TensorView& x, std::int32_t layer) const;
    void makeChoices();
    void noteExperts(const kernels::TensorView& ids, std::int64_t moeLayer);
    void countExperts(const kernels::TensorView& ids);
    void endCapture();
    StepOutput head(const kernels::TensorView& x);
    bool takesBest() const;
    StepOutput takeBest(const kernels::TensorView& part);
    void gatherColumns(const kernels::TensorView& part, const kernels::TensorView& whole) const;
    void makeLogits(const kernels::TensorView& x, const kernels::TensorView& logits) const;
    StepOutput sample(const kernels::TensorView& logits);
    void scoreAsTraining(const kernels::TensorView& logits, const kernels::TensorView& ids,
                         const kernels::TensorView& drawLogprobs) const;
    StepOutput results(SampledViews views);

    const ModelRank& rank_;
    const StepInputs& stepInputs_;
    const KvCache* cache_; ///< null: the step has no cache
    kernels::Context& context_;
    OpRunner runner_;
    const StepRunOptions& options_;
    kernels::GraphCapture* capture_ = nullptr; ///< while one is open
    kernels::Tensor inputs_;
    kernels::Tensor frequencies_;
    kernels::Tensor choices_; ///< (tokens, MoE layers, k) U8 or U16; empty: not asked for, or without experts
};

} // namespace vitrine::engine
