// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One step of a model: its host-side arrays (StepInputs) and its ops (StepRunner), which the dry run and the run share.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/model/model.h"

namespace vitrine::engine {

/// Tokens that share one table of rotary frequencies.
struct RopeSpan {
    std::int64_t begin = 0, end = 0;
    std::int64_t offset = 0; ///< of its frequencies in StepInputs::frequencies
    float scale = 1;
};

/// Everything that the device needs to know of a step, made on the host once its cache pages are reserved. Without a
/// cache (null) every sequence begins at position 0.
struct StepInputs {
    StepInputs(const Model& model, const StepBatch& batch, const KvCache* cache);

    /// Where an array lies in `inputs`.
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
    std::vector<KvAppend> appends;
    std::vector<std::int32_t> inputs; ///< all I32 arrays, uploaded at once
    Slice ids, positions, sequence, offsets, rowIds;
    Slice sampling;                  ///< packed parameters; empty when every row is plainly greedy
    std::vector<GroupSlices> groups; ///< of the cache; empty without one
    std::vector<RopeSpan> ropeSpans;
    std::vector<float> frequencies; ///< of every span; empty when the model's own table serves

    /// What the sizes of the step's allocations depend on.
    std::vector<std::int64_t> signature() const;

private:
    Slice append(const std::vector<std::int32_t>& values);
    void addRope(const Model& model, const KvCache* cache);
};

/// Puts the ids that the device holds into the step's uploaded inputs.
void copyCarried(kernels::Context& context, const StepInputs& stepInputs, const kernels::TensorView& inputs);

/// The kernels of a decode step as a CUDA graph, from the embedding to the sampled ids. A step's allocations have the
/// same addresses whenever its signature and the arena are the same, so a later step uploads its inputs and replays the
/// graph: its tensors are not asked for again, its memory and its trace are those of the step that was captured.
struct StepGraph {
    bool known = false; ///< such a step ran before: everything it needs is compiled and loaded
    kernels::CudaGraph graph;
    kernels::StepMemory memory;
    std::optional<std::uint32_t> stepTemplate; ///< of the last step that ran its ops on the host
    kernels::TensorView inputs;
    kernels::TensorView ids, logprobs, topIds, topLogprobs; ///< of the sampled rows; empty where nothing is sampled

    std::array<kernels::TensorView, 4> results() const { return {ids, logprobs, topIds, topLogprobs}; }
};

/// A step from its inputs until its results were read.
struct LaunchedStep {
    LaunchedStep(const Model& model, const StepBatch& stepBatch, const KvCache* cache)
        : batch(stepBatch), sampling(stepBatch.sampling.begin(), stepBatch.sampling.end()),
          stepInputs(model, batch, cache) {
        batch.sampling = sampling;
    }
    ~LaunchedStep() = default;
    LaunchedStep(const LaunchedStep&) = delete; // the batch views the sampling beside it
    LaunchedStep& operator=(const LaunchedStep&) = delete;

    StepBatch batch;
    std::vector<kernels::SampleParameters> sampling;
    StepInputs stepInputs;
    std::array<kernels::TensorView, 4> views; ///< ids, logprobs, topIds, topLogprobs on the device
    StepGraph* graph = nullptr;               ///< null: its ops were launched one by one
    kernels::StepReplay replay;               ///< of the graph
    std::byte* results = nullptr;             ///< pinned: ids, logprobs, topIds, topLogprobs behind each other
    kernels::Mark fetched;                    ///< the results are in place
};

/// Called with what was sampled (ids, logprobs, topIds, topLogprobs) while its tensors are there.
using OnSampled = std::function<void(const std::array<kernels::TensorView, 4>& results)>;

/// What becomes of the ops of a step and of its results. Without any of these the ops run one by one and what was
/// sampled is read.
struct StepRunOptions {
    kernels::Prefetch* compile = nullptr; ///< ops are not run: their kernels are compiled
    StepGraph* capture = nullptr;         ///< ops become this graph, which is then replayed
    OnSampled fetchLater;                 ///< called instead of reading what was sampled; the output is then empty
};

/// Runs the ops of a planned step on a context: the model's own, or a Meta context that only wants to know sizes. With
/// a cache attention reads the cache; without one (null) it reads the keys and values that the step itself has made, as
/// the forward pass of training does.
class StepRunner {
public:
    StepRunner(const Model& model, const StepInputs& stepInputs, const KvCache* cache, kernels::Context& context,
               const StepRunOptions& options)
        : model_(model), stepInputs_(stepInputs), cache_(cache), context_(context), options_(options) {}

    StepOutput run();

private:
    kernels::Tensor make(base::MemoryCategory category, std::string_view name, kernels::DType dtype,
                         const kernels::Shape& shape);
    kernels::Tensor activation(std::string_view name, const kernels::Shape& shape);
    template <class Op> void execute(const Op& op);
    template <class Op> kernels::Tensor takeScratch(Op& op);
    template <class Op> void runWithScratch(Op op);
    void upload(const void* host, const kernels::TensorView& device);

    kernels::TensorView input(const StepInputs::Slice& slice) const;
    kernels::KvView kvView(int layer) const;
    void attention(int index, const kernels::TensorView& x);
    void attendCache(int index, const kernels::KvView& view, const kernels::TensorView& q, const kernels::TensorView& k,
                     const kernels::TensorView& v, const kernels::TensorView& out);
    void attendOwn(const DecoderLayer& layer, const kernels::TensorView& q, const kernels::TensorView& k,
                   const kernels::TensorView& v, const kernels::TensorView& out);
    kernels::DType newKeyType(const kernels::KvView& view) const;
    void project(int index, const kernels::KvView& view, const kernels::TensorView& x, const kernels::TensorView& q,
                 const kernels::TensorView& k, const kernels::TensorView& v);
    bool writesBeforeAttention(int index) const;
    kernels::KvView viewAfter(int index, kernels::KvView view) const;
    void writeRing(const kernels::KvView& after, const kernels::TensorView& k, const kernels::TensorView& v);
    void mlp(const DecoderLayer& layer, const kernels::TensorView& x);
    void experts(const DecoderLayer& layer, const kernels::TensorView& x);
    void countExperts(const kernels::TensorView& ids);
    void endCapture();
    StepOutput head(const kernels::TensorView& x);
    StepOutput sample(const kernels::TensorView& logits);

    const Model& model_;
    const StepInputs& stepInputs_;
    const KvCache* cache_; ///< null: there is none
    kernels::Context& context_;
    const StepRunOptions& options_;
    kernels::GraphCapture* capture_ = nullptr; ///< while one is open
    kernels::Tensor inputs_;
    kernels::Tensor frequencies_;
};

} // namespace vitrine::engine
