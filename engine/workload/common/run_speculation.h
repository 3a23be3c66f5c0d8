// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Speculative decoding as an experiment's options ask for it: its drafter, its draft model, its results.

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "engine/generation/model_drafter.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// The options of workloads that can speculate.
inline constexpr std::array<std::string_view, 6> kSpeculationKeys = {
    "speculate", "draft_tokens", "draft_model", "ngram_shortest", "ngram_longest", "assumed_acceptance"};

/// The keys of a workload, and those of speculation after them.
template <std::size_t Count>
constexpr std::array<std::string_view, Count + kSpeculationKeys.size()>
withSpeculationKeys(const std::array<std::string_view, Count>& keys) {
    std::array<std::string_view, Count + kSpeculationKeys.size()> all;
    std::ranges::copy(kSpeculationKeys, std::ranges::copy(keys, all.begin()).out);
    return all;
}

/// Throws BadInput "NAME: KEY: what" for options that do not go together.
void checkSpeculation(const Experiment& experiment, const std::string& name);
inline bool speculates(const Experiment& experiment) {
    return experiment.text("speculate") != "none";
}

/// The requests whose tokens a draft model keeps in a pool of pages. Without it the draft model's cache grows as the
/// requests do.
struct DraftPool {
    std::int64_t sequences = 1;
    std::int64_t longest = 0; ///< tokens of the longest request with its answer; 0: not known
};

/// Owns what speculation needs beside the model. Make it after the model and before an engine that divides the free
/// memory; it must outlive the engine.
class RunSpeculation {
public:
    /// `cache` is that of the model; the draft model's has the same type and pages. Adds the draft model's facts to
    /// run.metrics. Throws BadInput where the draft model has another vocabulary, and what loading a model throws.
    RunSpeculation(const Run& run, const ModelSource& source, kernels::Context& context, const KvCacheOptions& cache,
                   const std::optional<DraftPool>& pool);

    const Speculation& speculation() const { return speculation_; }
    /// Adds what came of the drafts, where the run speculates. check_step_seconds, plain_step_seconds and
    /// speculation_gain stay away where the run had no such steps.
    void addMetrics(nlohmann::json& metrics, const SpeculationCounts& counts) const;

private:
    void loadDraftModel(const Run& run, const ModelSource& source, kernels::Context& context,
                        const KvCacheOptions& cache, const std::optional<DraftPool>& pool);

    std::unique_ptr<Model> draftModel_;
    std::unique_ptr<Drafter> drafter_;
    Speculation speculation_;
};

} // namespace vitrine::engine
