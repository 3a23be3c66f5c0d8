// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/run_speculation.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/integers.h"
#include "base/log.h"
#include "engine/generation/ngram_drafter.h"
#include "engine/workload/experiment/results.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

/// A draft model's pool takes one of so many equal shares of the free memory at most. The model's own cache is worth
/// more, because requests without room in the draft model's cache go on without drafts.
constexpr std::uint64_t kDraftPoolShares = 4;
constexpr std::int64_t kUsualLength = 4096; ///< tokens of a request where nothing is known

[[noreturn]] void failSpeculation(const std::string& name, const std::string& what) {
    throw base::BadInput((name.empty() ? "" : name + ": ") + what);
}

/// Every token must be the same text for both models.
void requireSameVocabulary(const ModelSource& model, const ModelSource& draft) {
    if (model.config.vocab != draft.config.vocab) {
        throw base::BadInput(fmt::format("draft_model: {} has a vocabulary of {} tokens and {} one of {}; name a draft "
                                         "model with the same vocabulary",
                                         draft.name, draft.config.vocab, model.name, model.config.vocab));
    }
    if (model.tokenizerFile.empty() || draft.tokenizerFile.empty()) {
        return;
    }
    const std::shared_ptr<const Tokenizer> ours = Tokenizer::load(model.tokenizerFile);
    const std::shared_ptr<const Tokenizer> theirs = Tokenizer::load(draft.tokenizerFile);
    for (std::int32_t id = 0; id < std::max(ours->vocabSize(), theirs->vocabSize()); ++id) {
        if (ours->pieceOf(id) != theirs->pieceOf(id)) {
            throw base::BadInput(fmt::format("draft_model: token {} is \"{}\" in {} and \"{}\" in {}; name a draft "
                                             "model with the same vocabulary",
                                             id, theirs->pieceOf(id), draft.name, ours->pieceOf(id), model.name));
        }
    }
}

/// The draft model's cache: like the model's, but with a pool of its own, or growing with the requests.
KvCacheOptions draftCache(kernels::Context& context, const ModelConfig& config, const KvCacheOptions& model,
                          const std::optional<DraftPool>& pool) {
    KvCacheOptions cache;
    cache.dtype = model.dtype;
    cache.pageTokens = model.pageTokens;
    cache.slidingSaves = model.slidingSaves;
    if (!pool) {
        return cache;
    }
    cache.kind = KvCacheKind::Paged;
    cache.poolSequences = pool->sequences;
    const std::int64_t most = config.maxPositions > 0 ? config.maxPositions : kUsualLength;
    const std::int64_t longest = pool->longest > 0 ? pool->longest : most;
    const kernels::Memory& memory = context.memory();
    const std::uint64_t freeBytes = memory.budget() - std::min(memory.budget(), memory.statistics().reserved);
    for (const KvGroup& group : kvGroups(config, cache)) {
        if (!group.ring()) {
            const std::int64_t wanted = pool->sequences * base::ceilDivide(longest, group.pageTokens);
            const auto room = static_cast<std::int64_t>(freeBytes / kDraftPoolShares / group.pageBytes);
            cache.poolPages = std::max<std::int64_t>(std::min(wanted, room), 1);
        }
    }
    return cache;
}

} // namespace

void checkSpeculation(const Experiment& experiment, const std::string& name) {
    const bool drafts = experiment.text("speculate") == "draft";
    if (drafts && experiment.text("draft_model").empty()) {
        failSpeculation(name, "draft_model: missing; name a smaller model with the same vocabulary");
    }
    if (!drafts && !experiment.text("draft_model").empty()) {
        failSpeculation(name, "draft_model: is used with speculate draft only");
    }
    if (experiment.integer("ngram_shortest") > experiment.integer("ngram_longest")) {
        failSpeculation(name, "ngram_shortest: is more than ngram_longest");
    }
}

RunSpeculation::RunSpeculation(const Run& run, const ModelSource& source, kernels::Context& context,
                               const KvCacheOptions& cache, const std::optional<DraftPool>& pool) {
    if (!speculates(run.spec)) {
        return;
    }
    speculation_.draftTokens = run.spec.integer("draft_tokens");
    speculation_.assumedAcceptance = run.spec.real("assumed_acceptance");
    if (run.spec.text("speculate") == "ngram" && !context.can().computesValues) {
        drafter_ = std::make_unique<PlannedDrafter>();
    } else if (run.spec.text("speculate") == "ngram") {
        drafter_ = std::make_unique<NgramDrafter>(
            NgramSizes{run.spec.integer("ngram_shortest"), run.spec.integer("ngram_longest")});
    } else {
        loadDraftModel(run, source, context, cache, pool);
    }
    speculation_.drafter = drafter_.get();
    run.metrics[result::kSpeculate.key] = run.spec.text("speculate");
}

void RunSpeculation::loadDraftModel(const Run& run, const ModelSource& source, kernels::Context& context,
                                    const KvCacheOptions& cache, const std::optional<DraftPool>& pool) {
    const ModelSource draft = openModel(run.spec.text("draft_model"), {});
    requireSameVocabulary(source, draft);
    ModelOptions modelled = modelOptions(run, context, "quantized");
    if (!canDivide(draft.config, modelled.parallel)) {
        base::logInfo(fmt::format("draft_model: {} is not divided among the ranks; the first one has it", draft.name));
        modelled.parallel = {};
    }
    draftModel_ = std::make_unique<Model>(context, draft, modelled, run.sinks.progress);
    draftModel_->markWeightsChanged(); // a context keeps the weights of one model for the next run, and not these
    ModelDrafterOptions options;
    options.cache = draftCache(context, draftModel_->config(), cache, pool);
    options.cache.everyRank = modelled.parallel.ranks() > 1;
    options.draftTokens = speculation_.draftTokens;
    options.prefillChunk = run.spec.has("prefill_chunk") ? run.spec.integer("prefill_chunk") : 0;
    drafter_ = std::make_unique<ModelDrafter>(*draftModel_, options);
    run.metrics[result::kDraftModel.key] = run.spec.text("draft_model");
    run.metrics[result::kDraftModelBytes.key] = draftModel_->loadReport().residentBytes;
}

void RunSpeculation::addMetrics(nlohmann::json& metrics, const SpeculationCounts& counts) const {
    if (!speculation_.on()) {
        return;
    }
    metrics[result::kDraftedTokens.key] = counts.drafted;
    metrics[result::kAcceptedTokens.key] = counts.accepted;
    metrics[result::kAcceptanceRate.key] = counts.acceptanceRate();
    metrics[result::kTokensPerStep.key] = counts.tokensPerStep();
    metrics[result::kDraftSeconds.key] = counts.draftSeconds;
    metrics[result::kCheckSteps.key] = counts.checkSteps;
    metrics[result::kStepsSaved.key] = counts.savedSteps();
    const auto addKnown = [&](const ResultField& field, const std::optional<double>& value) {
        if (value) {
            metrics[field.key] = *value;
        }
    };
    addKnown(result::kCheckStepSeconds, counts.checkTime.seconds());
    addKnown(result::kPlainStepSeconds, counts.plainTime.seconds());
    addKnown(result::kSpeculationGain, counts.gain());
}

} // namespace vitrine::engine
