// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Steps of a model: run, captured as graphs, launched ahead.

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "engine/model/model.h"
#include "engine/model/step.h"
#include "engine/model/step_prices.h"
#include "kernels/context/context_options.h"
#include "kernels/context/equal_work.h"

namespace vitrine::engine {
namespace {

constexpr std::size_t kMaxGraphs = 32; ///< each holds some device memory; the longest unused goes

/// Ends the tracer's step however it is left.
class TracedStep {
public:
    TracedStep(kernels::Tracer& tracer, const StepBatch& batch, std::int64_t tokens) : tracer_(tracer) {
        tracer_.beginStep(batch.name, batch.index, tokens, batch.repeats);
    }
    ~TracedStep() { tracer_.endStep(); }
    TracedStep(const TracedStep&) = delete; // one begin, one end
    TracedStep& operator=(const TracedStep&) = delete;

private:
    kernels::Tracer& tracer_;
};

/// Ends a launched step's replay in the trace however it is left.
class TracedReplay {
public:
    TracedReplay(kernels::Tracer& tracer, const kernels::StepReplay& replay) : tracer_(tracer), replay_(replay) {}
    ~TracedReplay() { tracer_.endReplay(replay_); }
    TracedReplay(const TracedReplay&) = delete; // one end
    TracedReplay& operator=(const TracedReplay&) = delete;

private:
    kernels::Tracer& tracer_;
    const kernels::StepReplay& replay_;
};

std::vector<KvAppend> appendsOf(const StepBatch& batch) {
    std::vector<KvAppend> appends;
    appends.reserve(batch.sequences.size());
    for (const StepSequence& sequence : batch.sequences) {
        appends.push_back({sequence.sequence, static_cast<std::int64_t>(sequence.tokens.size()), sequence.keep});
    }
    return appends;
}

void beginVirtualStep(kernels::Context& context, const StepInputs& stepInputs) {
    context.beginVirtualStep(context.traits().features.fewStepSizes && stepInputs.repeatsAlike()
                                 ? kernels::LaunchKind::Replayed
                                 : kernels::LaunchKind::Launched);
}

} // namespace

/// Makes room in the cache, and what the device needs to know.
std::unique_ptr<LaunchedStep> Model::prepareStep(const StepBatch& batch, KvCache& cache) const {
    // A cache that grows here does so beside the step under way, and nothing moves.
    cache.reserve(appendsOf(batch));
    return std::make_unique<LaunchedStep>(*this, batch, &cache, inputValues(context_));
}

void Model::requireNoneLaunched() const {
    if (!launched_.empty()) {
        throw base::Internal("a step began while launched ones are under way");
    }
}

StepOutput Model::step(const StepBatch& batch) {
    context_.throwIfStopped();
    requireNoneLaunched();
    LaunchedStep step(*this, batch, nullptr, inputValues(context_));
    return runOps(step, nullptr, false);
}

StepOutput Model::step(const StepBatch& batch, KvCache& cache) {
    context_.throwIfStopped();
    requireNoneLaunched();
    std::unique_ptr<LaunchedStep> step = prepareStep(batch, cache);
    step->graph = readyGraph(step->stepInputs, cache);
    if (step->graph != nullptr) {
        replay(*step, cache, 0);
        launched_.push_back(std::move(step));
        return finishLaunched();
    }
    return kernels::jumpsEqualWork(context_) && step->stepInputs.onlySamples() ? priceStep(*step, cache)
                                                                               : runOps(*step, &cache, false);
}

/// A step of a plan runs unless steps like it have told what it takes.
StepOutput Model::priceStep(LaunchedStep& step, KvCache& cache) {
    const StepInputs& stepInputs = step.stepInputs;
    context_.joinStreams();
    if (auto price = stepPrices_->of(stepInputs, cache)) {
        const TracedStep traced(context_.tracer(), stepInputs.batch, stepInputs.tokens);
        context_.memory().step().ensureCapacity(lead().arenaBytes(stepInputs, &cache));
        context_.memory().repeatStep(price->memory);
        lastStepMemory_ = price->memory;
        context_.passTime(price->seconds, price->exchangeSeconds);
        context_.joinStreams();
        cache.commit(stepInputs.appends);
        sampleOnMeta(stepInputs, config_.vocab, price->out.ids);
        price->out.experts.bytes.resize(static_cast<std::size_t>(stepInputs.tokens) * price->out.experts.rowBytes());
        return price->out;
    }
    const base::TimeNs begin = context_.clock().now(), once = context_.onceTime();
    const double exchanged = context_.exchangeSeconds();
    StepOutput out = runOps(step, &cache, false);
    const double seconds = static_cast<double>(context_.clock().now() - begin) * 1e-9;
    lastStepMemory_ = context_.memory().stepMemory();
    if (context_.onceTime() == once) {
        StepOutput kept = out;
        kept.experts.bytes = {}; // zeros of many tokens
        stepPrices_->note(stepInputs, cache,
                          {seconds, lastStepMemory_, std::move(kept), context_.exchangeSeconds() - exchanged});
    }
    return out;
}

bool Model::launch(const StepBatch& batch, KvCache& cache, Launch how) {
    context_.throwIfStopped();
    const bool possible = how == Launch::Ops ? cache.book() != nullptr
                                             : !batch.sampling.empty() && (how == Launch::Graph || !launched_.empty());
    if (!context_.can().runsAhead || launched_.size() >= resultSlots_.size() || !possible) {
        return false;
    }
    std::unique_ptr<LaunchedStep> step = prepareStep(batch, cache);
    const StepInputs& stepInputs = step->stepInputs;
    if (how == Launch::Ops) {
        if (stepInputs.rows != static_cast<std::int64_t>(batch.sampling.size()) ||
            lead().arenaBytes(stepInputs, &cache) > context_.memory().step().capacity()) {
            return false; // a larger arena takes the place of the one that steps under way use
        }
        runOps(*step, &cache, true);
    } else {
        step->graph = readyGraph(stepInputs, cache);
        if (step->graph == nullptr || step->graph->sampled[0].empty()) {
            return false;
        }
        const bool onPendingIds = how == Launch::GraphOnPendingIds;
        if (onPendingIds &&
            (stepInputs.ids.offset != 0 || launched_.back()->views[0].shape.count() != stepInputs.ids.count)) {
            return false;
        }
        replay(*step, cache, onPendingIds ? stepInputs.ids.count : 0);
    }
    launched_.push_back(std::move(step));
    return true;
}

std::vector<std::int64_t> Model::graphKey(const StepInputs& stepInputs, const KvCache& cache) const {
    std::vector<std::int64_t> key = stepInputs.signature();
    // The arena's address changes only when it grows; where it could not, the graphs were dropped.
    key.push_back(static_cast<std::int64_t>(context_.memory().step().capacity()));
    for (const KvGroup& group : cache.groups()) {
        const kernels::KvView view = cache.layerView(group.layers.front());
        key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(view.keys.data)));
        key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(view.values.data)));
        key.push_back(view.keys.stride0());
        key.push_back(view.keys.shape[1]);
        key.push_back(static_cast<std::int64_t>(view.keys.dtype));
    }
    return key;
}

bool Model::canBeGraph(const StepInputs& stepInputs) const {
    return context_.can().replaysGraphs && stepInputs.repeatsAlike() && !context_.memory().guarded() &&
           context_.tracer().foldsSteps();
}

/// Made where there is none; null where the step cannot be one.
StepGraph* Model::graphOf(const StepInputs& stepInputs, const KvCache* cache) {
    if (cache == nullptr || !canBeGraph(stepInputs)) {
        return nullptr;
    }
    std::vector<std::int64_t> key = graphKey(stepInputs, *cache);
    if (graphs_.size() >= kMaxGraphs && graphs_.count(key) == 0) {
        graphs_.erase(std::ranges::min_element(graphs_, {}, [](const auto& item) { return item.second->lastUse; }));
    }
    std::unique_ptr<StepGraph>& graph = graphs_[std::move(key)];
    if (graph == nullptr) {
        graph = std::make_unique<StepGraph>();
    }
    graph->lastUse = ++graphUses_;
    return graph.get();
}

/// One that was captured, and that the trace can report as a replay; null where there is none.
StepGraph* Model::readyGraph(const StepInputs& stepInputs, const KvCache& cache) {
    if (!canBeGraph(stepInputs)) {
        return nullptr;
    }
    const std::optional<std::uint64_t> size = leader().knownArenaBytes(stepInputs);
    if (!size || *size > context_.memory().step().capacity()) {
        return nullptr;
    }
    const auto found = graphs_.find(graphKey(stepInputs, cache));
    if (found == graphs_.end() || found->second->graph.empty() ||
        !context_.tracer().canReplay(found->second->stepTemplate)) {
        return nullptr;
    }
    found->second->lastUse = ++graphUses_;
    return found->second.get();
}

/// Runs the ops of a rank, inside a step of its trace.
StepOutput Model::runRank(ModelRank& rank, const LaunchedStep& step, const KvCache* cache,
                          const StepRunOptions& runOptions) {
    StepOutput out = StepRunner(rank, step.stepInputs, cache, rank.context(), runOptions).run();
    rank.context().joinStreams();
    return out;
}

/// Every rank runs its part. All have memory for it before one begins.
StepOutput Model::runOnRanks(LaunchedStep& step, KvCache* cache) {
    const StepInputs& stepInputs = step.stepInputs;
    onEveryRank(
        [&](ModelRank& rank) { rank.context().memory().step().ensureCapacity(rank.arenaBytes(stepInputs, cache)); });
    StepOutput out;
    onEveryRank([&](ModelRank& rank) {
        const TracedStep traced(rank.context().tracer(), stepInputs.batch, stepInputs.tokens);
        beginVirtualStep(rank.context(), stepInputs);
        StepRunOptions runOptions;
        runOptions.layerKinds = rank.kindsOfLayers();
        StepOutput mine = runRank(rank, step, cache, runOptions);
        if (&rank == &lead()) {
            out = std::move(mine);
            if (cache != nullptr) {
                cache->commit(stepInputs.appends);
            }
        }
    });
    return out;
}

/// Runs the step's ops, or launches them (`ahead`). The second time that a step is run they become a graph.
StepOutput Model::runOps(LaunchedStep& step, KvCache* cache, bool ahead) {
    const StepInputs& stepInputs = step.stepInputs;
    StepGraph* graph = nullptr;
    StepOutput out;
    if (ranks_.size() > 1) {
        out = runOnRanks(step, cache);
    } else {
        const TracedStep traced(context_.tracer(), stepInputs.batch, stepInputs.tokens);
        beginVirtualStep(context_, stepInputs);
        StepRunOptions runOptions;
        runOptions.layerKinds = lead().kindsOfLayers();
        if (ahead) {
            runOptions.fetchLater = [&](const SampledViews& results) {
                reserveResults(step, results);
                fetch(step);
            };
        } else {
            try {
                context_.memory().step().ensureCapacity(lead().arenaBytes(stepInputs, cache));
            } catch (const base::OutOfMemory&) {
                graphs_.clear(); // the arena may be as large as before now, but elsewhere
                throw;
            }
            graph = graphOf(stepInputs, cache);
            // The first of its kind compiles and loads what it needs, which a capture should not.
            runOptions.capture = graph != nullptr && graph->known && graph->graph.empty() ? graph : nullptr;
        }
        out = runRank(lead(), step, cache, runOptions);
        if (runOptions.capture != nullptr) {
            graph->memory = context_.memory().stepMemory();
        }
        if (cache != nullptr) {
            cache->commit(stepInputs.appends);
        }
    }
    ExpertUse* const use = stepInputs.batch.expertUse;
    if (use != nullptr && !ahead && context_.can().computesValues) {
        ++use->steps;
        use->tokens += stepInputs.tokens;
    }
    if (graph != nullptr) {
        graph->known = true;
        graph->stepTemplate = context_.tracer().lastTemplate();
    }
    return out;
}

/// Launches the step's graph. `knownInputs`: of the first inputs, ids that the step launched before it samples.
void Model::replay(LaunchedStep& step, KvCache& cache, std::int64_t knownInputs) {
    const StepInputs& stepInputs = step.stepInputs;
    const kernels::TensorView& inputs = step.graph->inputs;
    reserveResults(step, step.graph->sampled);
    step.replay = context_.tracer().beginReplay(step.graph->stepTemplate, stepInputs.batch.index);
    {
        const kernels::ReplayScope scope(context_.tracer(), step.replay);
        if (knownInputs > 0) {
            const kernels::TensorView& ids = launched_.back()->views[0];
            context_.copy(ids.data, inputs.data, ids.bytes());
        }
        context_.upload(stepInputs.inputs.data() + knownInputs, inputs.as<std::int32_t>() + knownInputs,
                        inputs.bytes() - static_cast<std::uint64_t>(knownInputs) * sizeof(std::int32_t));
        copyCarried(context_, stepInputs, inputs);
        context_.replay(step.graph->graph);
        if (stepInputs.batch.idsOut != nullptr) {
            const kernels::TensorView& ids = step.graph->sampled[0];
            context_.copy(ids.data, stepInputs.batch.idsOut, ids.bytes());
        }
        fetch(step);
    }
    // The host counts the memory while the device works.
    context_.memory().repeatStep(step.graph->memory);
    cache.commit(stepInputs.appends);
}

/// Takes a slot of pinned memory for the results of the step; there may be none.
void Model::reserveResults(LaunchedStep& step, const SampledViews& results) {
    step.views = results;
    std::uint64_t bytes = 0;
    for (const kernels::TensorView& part : results) {
        bytes += part.empty() ? 0 : part.bytes();
    }
    kernels::Buffer& slot = resultSlots_[nextSlot_++ % resultSlots_.size()];
    if (slot.bytes() < bytes) {
        slot = kernels::Buffer(context_.memory().host(), bytes, {base::MemoryCategory::Logits, "step.results"});
    }
    step.results = static_cast<std::byte*>(slot.data());
}

/// Starts the copies into that slot.
void Model::fetch(LaunchedStep& step) {
    std::byte* out = step.results;
    for (const kernels::TensorView& part : step.views) {
        if (!part.empty()) {
            context_.downloadLater(part.data, out, part.bytes());
            out += part.bytes();
        }
    }
    step.fetched = context_.mark();
}

void Model::wait(const LaunchedStep& step) {
    if (step.graph == nullptr) {
        step.fetched.wait();
        return;
    }
    const TracedReplay traced(context_.tracer(), step.replay);
    const kernels::ReplayScope scope(context_.tracer(), step.replay);
    step.fetched.wait();
}

StepOutput Model::finishLaunched() {
    const std::unique_ptr<LaunchedStep> step = std::move(launched_.front());
    launched_.pop_front();
    wait(*step);
    StepOutput out;
    const std::byte* in = step->results;
    const auto read = [&](const kernels::TensorView& part, auto& values) {
        if (!part.empty()) {
            values.resize(part.bytes() / sizeof(values[0]));
            std::memcpy(values.data(), in, part.bytes());
            in += part.bytes();
        }
    };
    read(step->views[0], out.ids);
    read(step->views[1], out.logprobs);
    read(step->views[2], out.topIds);
    read(step->views[3], out.topLogprobs);
    read(step->views[4], out.drawLogprobs);
    out.experts = choicesIn(step->views[5]);
    read(step->views[5], out.experts.bytes);
    return out;
}

void Model::dropLaunched() noexcept {
    for (const auto& step : launched_) {
        try {
            wait(*step);
        } catch (const base::Error&) {
            // The next call to the device reports the fault.
            break;
        }
    }
    launched_.clear();
}

std::uint64_t Model::stepBytes(const StepBatch& batch, std::int64_t before, const KvCacheOptions& options) {
    kernels::Context& dry = lead().dryContext();
    KvCache cache(dry, config_, options);
    const KvAppend first{cache.addSequence(), before};
    for (std::size_t i = 1; i < batch.sequences.size(); ++i) {
        cache.addSequence();
    }
    if (before > 0) {
        cache.reserve({&first, 1});
        cache.commit({&first, 1});
    }
    cache.reserve(appendsOf(batch));
    return lead().dryRun(StepInputs(*this, batch, &cache, InputValues::OnlySizes), &cache, false);
}

std::uint64_t Model::stepBytes(const StepBatch& batch) {
    return lead().dryRun(StepInputs(*this, batch, nullptr, InputValues::OnlySizes), nullptr, false);
}

void Model::prepare(std::span<const StepBatch> steps, const KvCacheOptions& options, base::ProgressSink* progress) {
    if (!context_.can().compilesKernels) {
        return;
    }
    kernels::Context& dry = lead().dryContext();
    KvCache cache(dry, config_, options);
    std::vector<int> sequences;
    for (const StepBatch& batch : steps) {
        for (const StepSequence& item : batch.sequences) {
            while (static_cast<int>(sequences.size()) <= item.sequence) {
                sequences.push_back(cache.addSequence());
            }
        }
        cache.reserve(appendsOf(batch));
        const StepInputs stepInputs(*this, batch, &cache, InputValues::OnlySizes);
        lead().dryRun(stepInputs, &cache, true);
        cache.commit(stepInputs.appends);
    }
    context_.waitForKernels(progress);
}

} // namespace vitrine::engine
