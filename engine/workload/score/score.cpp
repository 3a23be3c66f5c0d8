// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workload score: how likely a model finds rows that are given.

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "engine/checkpoint/output_check.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/run_adapter.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "engine/workload/finetune/finetune_plan.h"
#include "engine/workload/finetune/finetune_run.h"
#include "engine/workload/score/scored_rows.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::array<ResultSet, 7> kScoreResults = {result::kRunSet,    result::kMemorySet, result::kLoadingSet,
                                                    result::kKernelSet, result::kPlanSet,   result::kRateSet,
                                                    result::kScoreSet};
constexpr std::array<std::string_view, 12> kScoreSharedKeys = {
    "adapter", "data",   "temperature", "batch",         "share_prompts",        "loss_chunks",
    "output",  "repeat", "chat_format", "chat_template", "chat_template_kwargs", "date"};
constexpr std::array<WorkloadDefault, 1> kScoreDefaults{{{"temperature", "1"}}};
constexpr std::array<WorkloadOutput, 1> kScoreOutputs{{{"output", &kScoresOutput}}};

constexpr std::array kScoreOptions = {
    OptionSpec{"score_tensor", OptionType::Choice, "logprobs", "", 0, 0,
               "logprobs|old_logprobs|rollout_logprobs|reference_logprobs", "", "Run",
               "Name of the log-probabilities in the output, as rl reads them from a file of rollouts"},
};

/// Sums over the tokens of a row, or of all.
struct Sums {
    std::int64_t tokens = 0;
    double logProb = 0, entropy = 0;

    void add(const Sums& more) {
        tokens += more.tokens;
        logProb += more.logProb;
        entropy += more.entropy;
    }
    double mean(double sum) const { return tokens > 0 ? sum / static_cast<double>(tokens) : 0; }
};

Sums sumsOfRow(const RowScores& scores, std::size_t begin, std::size_t end) {
    Sums out;
    for (std::size_t place = begin; place < end; ++place) {
        out.tokens += scores.scored[place];
        out.logProb += static_cast<double>(scores.logProbs[place]);
        out.entropy += static_cast<double>(scores.entropies[place]);
    }
    return out;
}

void addScores(Json& metrics, const ScoredRows& rows, const RowScores& scores) {
    Json list = Json::array();
    Sums all;
    const auto width = static_cast<std::size_t>(rows.width);
    for (std::size_t row = 0; row < rows.lengths.size(); ++row) {
        const Sums sums = sumsOfRow(scores, row * width, (row + 1) * width);
        list.push_back({{"tokens", sums.tokens},
                        {"logprob", sums.logProb},
                        {"mean_logprob", sums.mean(sums.logProb)},
                        {"entropy", sums.mean(sums.entropy)}});
        all.add(sums);
    }
    metrics[result::kRows.key] = std::move(list);
    metrics[result::kScoredTokens.key] = all.tokens;
    metrics[result::kMeanLogprob.key] = all.mean(all.logProb);
    metrics[result::kPerplexity.key] = std::exp(-all.mean(all.logProb));
    metrics[result::kMeanEntropy.key] = all.mean(all.entropy);
}

/// The model and what scores rows with it.
class RowScorer {
public:
    RowScorer(const Run& run, const ModelSource& source, const ScoredRows& rows, kernels::Context& context)
        : rows_(rows), context_(context),
          model_(context, source, modelOptions(run, context, run.spec.text("weights")), run.sinks.progress),
          adapter_(loadAdapter(run, model_)),
          pass_(model_, memoryTechniques(run, source.config, context, rows.batches.largest())),
          objective_(context, run.spec.real("temperature")) {
        addLoadMetrics(run.metrics, model_.loadReport());
    }

    /// Goes over all rows. Returns its seconds.
    double score() {
        const base::TimeNs begin = context_.clock().now();
        context_.beginVirtualStep(kernels::LaunchKind::Trained);
        evaluateObjective(pass_, context_, rows_.batches.batches, objective_);
        context_.synchronize();
        return static_cast<double>(context_.clock().now() - begin) * 1e-9;
    }
    RowScores scores() const { return rowScores(rows_, objective_); }

private:
    const ScoredRows& rows_;
    kernels::Context& context_;
    Model model_;
    std::unique_ptr<Adapter> adapter_;
    GradientPass pass_;
    LogProbObjective objective_;
};

void runScore(const Run& run) {
    const ModelSource source = openSource(run);
    const ScoredRows rows = readScoredRows(run, source);
    const RunDevices context = makeContext(run);
    if (!context->can().computesValues) {
        throw base::Unsupported("backend: meta computes no values, so there are no scores; use cpu, or plan score");
    }
    runMeasured(run, *context, [&] {
        RowScorer scorer(run, source, rows, *context);
        std::vector<double> seconds;
        seconds.reserve(static_cast<std::size_t>(run.repeats()));
        for (std::int64_t i = 0; i < run.repeats(); ++i) {
            seconds.push_back(scorer.score());
        }
        const RowScores scores = scorer.scores();
        addScores(run.metrics, rows, scores);
        run.metrics[result::kSeconds.key] = median(seconds);
        addRepeats(run.metrics, std::string(result::kSeconds.key), seconds);
        run.metrics[result::kTokensPerSecond.key] = static_cast<double>(rows.batches.count()) / median(seconds);
        if (run.spec.has("output")) {
            writeScores(run, rows, scores);
            run.metrics[result::kOutput.key] = run.spec.text("output");
        }
    });
}

void planScore(const Run& run) {
    const ModelSource source = openSource(run);
    const ScoredRows rows = readScoredRows(run, source);
    addPlannedStep(run, *makePlanContext(run, run.sinks.trace), [&](const Run& once, kernels::Context& meta) {
        const double seconds = RowScorer(once, source, rows, meta).score();
        once.metrics[result::kTokensPerSecond.key] = static_cast<double>(rows.batches.count()) / seconds;
        return seconds;
    });
}

void checkScore(const Experiment& experiment, const std::string& name) {
    requireOption(experiment, name, "data", "name a safetensors file with input_ids, or rows of text");
    if (experiment.real("temperature") <= 0) {
        failOption(name, "temperature",
                   "is 0, which leaves one token possible; give 1, or the one that sampled the rows");
    }
}

std::optional<std::string> scoreText(const Experiment& experiment, const Json& metrics) {
    if (experiment.isPlan()) {
        return std::nullopt;
    }
    std::vector<std::vector<std::string>> table = {{"row", "tokens", "log-probability", "mean", "entropy"}};
    constexpr std::size_t kShown = 20;
    const Json& rows = rowsOf(metrics, result::kRows);
    for (std::size_t row = 0; row < std::min(rows.size(), kShown); ++row) {
        const Json& of = rows[row];
        table.push_back({std::to_string(row), std::to_string(of.value("tokens", 0)),
                         fmt::format("{:.4f}", of.value("logprob", 0.0)),
                         fmt::format("{:.4f}", of.value("mean_logprob", 0.0)),
                         fmt::format("{:.4f}", of.value("entropy", 0.0))});
    }
    std::string out = tableText(table);
    if (rows.size() > kShown) {
        out += fmt::format("and {} more rows\n", rows.size() - kShown);
    }
    return out + fmt::format("{} tokens: mean log-probability {:.4f}, perplexity {:.4f}, mean entropy {:.4f}\n",
                             countOf(metrics, result::kScoredTokens).value_or(0),
                             numberOf(metrics, result::kMeanLogprob).value_or(0),
                             numberOf(metrics, result::kPerplexity).value_or(0),
                             numberOf(metrics, result::kMeanEntropy).value_or(0));
}

} // namespace

constinit const Workload kScoreWorkload = {
    .name = "score",
    .title = "Score",
    .optionSets = kModelOptions | kWeightsOptions | kDeviceOptions | kRunOptions,
    .optionKeys = kScoreSharedKeys,
    .ownOptions = kScoreOptions,
    .defaults = kScoreDefaults,
    .outputs = kScoreOutputs,
    .check = checkScore,
    .run = runScore,
    .plan = planScore,
    .planHelp = "Memory and time of scoring rows",
    .planExample = "vitrine plan score --model ./my-model --data answers.safetensors --json",
    .results = kScoreResults,
    .resultText = scoreText,
};

} // namespace vitrine::engine
