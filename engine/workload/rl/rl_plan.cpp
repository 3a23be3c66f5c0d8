// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/rl_plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/integers.h"
#include "engine/planning/largest_fit.h"
#include "engine/planning/priced_work.h"
#include "engine/rl/policy/policy_batches.h"
#include "engine/workload/common/plan_parts.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/finetune_plan.h"
#include "engine/workload/rl/rl_loop.h"
#include "engine/workload/rl/rl_run.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLongestAnswer = std::int64_t{1} << 20;
constexpr std::int64_t kMostTogether = 4096; ///< answers: the most that the option slots takes

/// What a plan chose to compute again where the options do not say it. A plan that does not fit says how much it needs
/// with that choice, and not with the one that unbounded memory would make.
class ChosenTechnique {
public:
    /// The run with it, where an earlier one has chosen.
    Experiment fixed(const Run& run) const {
        Experiment out = run.spec;
        if (!chosen_.empty()) {
            out.set("checkpoint", chosen_);
        }
        return out;
    }
    /// `run` has been priced, as far as it came.
    void note(const Run& run) {
        chosen_ = run.metrics.value(std::string(result::kCheckpoint.key), std::string("layer"));
    }

private:
    std::string chosen_;
};

/// Prices `step` on the run's device and, where it does not fit, without a budget.
void planStep(const Run& run, const PlannedStep& step) {
    ChosenTechnique technique;
    addPlannedStep(run, *makePlanContext(run, run.sinks.trace), [&](const Run& once, kernels::Context& meta) {
        const Experiment spec = technique.fixed(once);
        const Run fixed{spec, once.sinks, once.stop, once.metrics};
        try {
            return step(fixed, meta);
        } catch (const base::OutOfMemory&) {
            technique.note(once);
            throw;
        }
    });
}

/// One step, which has all that later ones have, and nothing that is written or measured beside it.
Experiment loopStep(const Run& run) {
    Experiment out = run.spec;
    out.set("steps", std::int64_t{1});
    out.set("save_every", std::int64_t{0});
    return out;
}

/// Seconds of a step of the loop, and how many answers lost their pages to others meanwhile.
struct PricedLoop {
    double seconds = 0;
    std::int64_t preemptions = 0;
};

PricedLoop priceLoop(const Run& run, const ModelSource& source, kernels::Context& meta) {
    PricedLoop out;
    withPolicyLoop(run, source, meta, [&](PolicyLoop& loop) {
        loop.run();
        out = {loop.stepSeconds(), loop.preemptions()};
    });
    return out;
}

/// The largest number that fits when an option has it.
class LoopSearch {
public:
    LoopSearch(const Run& run, const ModelSource& source) : run_(run), source_(source) {}

    /// `apply` sets what n stands for. `whole`: no answer may lose its pages.
    std::int64_t largest(std::int64_t first, std::int64_t limit, bool whole,
                         const std::function<void(Experiment&, std::int64_t)>& apply) {
        return largestFit(
            std::min(first, limit), limit, [&](std::int64_t n) { return probe(n, whole, apply); },
            [this] { return budget_; });
    }

    bool fits(std::int64_t n, const std::function<void(Experiment&, std::int64_t)>& apply) {
        return probe(n, false, apply).has_value();
    }

private:
    std::optional<std::uint64_t> probe(std::int64_t n, bool whole,
                                       const std::function<void(Experiment&, std::int64_t)>& apply) {
        base::throwIfStopped(run_.stop);
        Experiment spec = loopStep(run_);
        spec.set("eval_every", std::int64_t{0});
        apply(spec, n);
        const RunDevices context = makePlanContext(run_, nullptr);
        budget_ = context->memory().budget();
        Json ignored;
        WorkloadSinks quiet;
        quiet.quiet = true;
        PricedLoop priced;
        try {
            const PricedWork work = priceWork(*context, [&](kernels::Context& meta) {
                priced = priceLoop(Run{spec, quiet, run_.stop, ignored}, source_, meta);
            });
            if (!work.fits() || (whole && priced.preemptions > 0)) {
                return std::nullopt;
            }
        } catch (const base::BadInput&) {
            return std::nullopt; // the pool holds not even one answer
        }
        return context->memory().statistics().peakReserved;
    }

    const Run& run_;
    const ModelSource& source_;
    std::uint64_t budget_ = 0;
};

/// Problems whose answers fill a micro-batch: with more of them a step takes longer and hardly more memory.
std::int64_t problemsOfOneBatch(const Experiment& spec, std::int64_t tokens) {
    const std::int64_t full = base::ceilDivide(PolicyBatchOptions{}.tokens, spec.integer("samples") * tokens);
    return std::min(full, spec.integer("prompts"));
}

/// Tries are made with few problems. What they find is tried with all; only where that does not fit, all tries are.
std::int64_t longestAnswer(const Run& run, const ModelSource& source, std::int64_t limit) {
    LoopSearch search(run, source);
    const auto all = [](Experiment& spec, std::int64_t tokens) { spec.set("max_new_tokens", tokens); };
    const std::int64_t quick =
        search.largest(run.spec.integer("max_new_tokens"), limit, false, [&](Experiment& spec, std::int64_t tokens) {
            all(spec, tokens);
            spec.set("prompts", problemsOfOneBatch(run.spec, tokens));
        });
    if (quick == 0 || search.fits(quick, all)) {
        return quick;
    }
    return quick == 1 ? 0 : search.largest(quick - 1, quick - 1, false, all);
}

void searchAnswer(const Run& run, const ModelSource& source) {
    const std::int64_t positions = contextLimit(source.config);
    const std::int64_t prompt = run.spec.maybeInteger("prompt_length").value_or(1);
    const std::int64_t limit = positions > 0 ? std::max<std::int64_t>(positions - prompt, 1) : kLongestAnswer;
    const std::int64_t found = longestAnswer(run, source, limit);
    run.metrics[result::kLongestAnswer.key] = found;
    run.metrics[result::kLongestAnswerLimitedBy.key] = found < limit ? "memory" : positions > 0 ? "model" : "search";
}

void searchBatch(const Run& run, const ModelSource& source) {
    const std::int64_t samples = run.spec.integer("samples");
    const std::int64_t found =
        LoopSearch(run, source)
            .largest(run.spec.integer("prompts"), std::max<std::int64_t>(kMostTogether / samples, 1), true,
                     [samples](Experiment& spec, std::int64_t prompts) {
                         spec.set("prompts", prompts);
                         spec.set("slots", std::min(prompts * samples, kMostTogether));
                     });
    run.metrics[result::kMaxBatch.key] = found * samples;
    run.metrics[result::kMaxBatchLimitedBy.key] = found * samples + samples > kMostTogether ? "slots" : "memory";
}

void planLoop(const Run& run, const ModelSource& source) {
    const Experiment spec = loopStep(run);
    planStep(Run{spec, run.sinks, run.stop, run.metrics},
             [&](const Run& once, kernels::Context& meta) { return priceLoop(once, source, meta).seconds; });
    if (run.spec.flag("max_context")) {
        searchAnswer(run, source);
    }
    if (run.spec.flag("max_batch")) {
        searchBatch(run, source);
    }
}

void planUpdates(const Run& run, const ModelSource& source) {
    const Rollouts rollouts = givenRollouts(run, source);
    Experiment spec = run.spec;
    // Of two updates the second one has all that any has: log-probabilities of the first are kept for it.
    spec.set("updates", std::min<std::int64_t>(run.spec.integer("updates"), 2));
    spec.set("save_every", std::int64_t{0});
    planStep(Run{spec, run.sinks, run.stop, run.metrics}, [&](const Run& once, kernels::Context& meta) {
        FinetuneModel model(once, source, meta);
        PolicyBatches batches = optionBatches(once, rollouts);
        PolicyUpdates updates(once, source, model, rollouts, batches);
        updates.run();
        return updates.stepSeconds();
    });
}

} // namespace

void planRl(const Run& run) {
    const ModelSource source = openSource(run);
    if (run.spec.has("rollouts")) {
        planUpdates(run, source);
    } else {
        planLoop(run, source);
    }
}

} // namespace vitrine::engine
