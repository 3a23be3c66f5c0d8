// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/load/after_load.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kBatch = 16;
constexpr std::int64_t kMostPositions = 512;
constexpr std::uint64_t kNoBudget = std::uint64_t{1} << 60;
constexpr std::int64_t kLogitsBytes = std::int64_t{128} << 20;

/// What one kind of weights answered.
struct Answer {
    std::vector<std::int32_t> ids;
    std::vector<float> logits; ///< (positions, vocab)
};

double rate(double count, double seconds) {
    return seconds > 0 ? count / seconds : 0;
}

/// Logits of the prompt's first positions, as many as one step takes.
std::vector<float> promptLogits(Model& model, const KvCacheOptions& cacheOptions,
                                const std::vector<std::int32_t>& prompt) {
    const std::int64_t vocab = model.config().vocab;
    const std::int64_t room = std::max<std::int64_t>(1, kLogitsBytes / (vocab * std::int64_t{sizeof(float)}));
    const auto count =
        static_cast<std::size_t>(std::min({room, kMostPositions, static_cast<std::int64_t>(prompt.size())}));
    KvCache cache(model.context(), model.config(), cacheOptions);
    std::vector<float> logits(count * static_cast<std::size_t>(vocab));
    StepBatch batch;
    batch.name = "prefill";
    batch.sequences.push_back({cache.addSequence(), {prompt.data(), count}, true});
    batch.logits = StepLogits::All;
    batch.logitsOut = logits.data();
    model.step(batch, cache);
    return logits;
}

/// Tokens of one sequence that the budget has room for beside what the answer needed: each more takes its bytes in the
/// layers without a window. 0: there is no budget to speak of, or no such layers.
std::int64_t contextTokens(kernels::Context& context, const ModelConfig& config, const KvCacheOptions& options,
                           const GenerateReport& report) {
    const std::uint64_t budget = context.memory().budget(), peak = context.memory().statistics().peakReserved;
    std::uint64_t tokenBytes = 0;
    const KvCache cache(context, config, options);
    for (const KvGroup& group : cache.groups()) {
        tokenBytes += group.window > 0 ? 0 : group.tokenBytes;
    }
    std::uint64_t kept = 0;
    for (const auto& [name, bytes] : report.kvGroupBytes) {
        kept += name == "full" ? bytes : 0;
    }
    if (tokenBytes == 0 || budget <= peak || budget >= kNoBudget) {
        return 0;
    }
    return static_cast<std::int64_t>((budget - peak + kept) / tokenBytes);
}

Answer answer(const Run& run, const ModelSource& source, const Prompts& prompts, const std::string& weights,
              Json& out) {
    const RunDevices context = makeContext(run);
    const ModelOptions options = modelOptions(run, *context, weights);
    Model model(*context, source, options, run.sinks.progress);
    GenerateOptions generate = generateOptions(run, options);
    generate.answerForm = prompts.answerForm;
    generate.progress = run.sinks.progress;
    generate.jumpEqualSteps = !context->can().computesValues;
    Answer result;
    const auto measure = [&](const std::vector<GenerateRequest>& requests) {
        GenerateReport report;
        Generator(model, prompts.tokenizer, generate).run(requests, report, TokenCallback());
        return report;
    };
    GenerateReport report = measure(prompts.requests);
    const auto promptTokens = static_cast<double>(prompts.requests.front().prompt.size());
    out["prompt_tokens"] = prompts.requests.front().prompt.size();
    out["prefill_seconds"] = report.prefillSeconds;
    out["prefill_tokens_per_second"] = rate(promptTokens, report.prefillSeconds);
    out["decode_tokens_per_second"] = rate(static_cast<double>(report.decodedTokens), report.decodeSeconds);
    if (const std::int64_t tokens = contextTokens(*context, model.config(), generate.cache, report); tokens > 0) {
        out["context_tokens"] = tokens;
    }
    if (!context->can().computesValues) {
        // Prices only: Meta has no values to compare, and a batch costs nothing there.
        report = measure(std::vector<GenerateRequest>(kBatch, prompts.requests.front()));
        out["decode_tokens_per_second_batch_16"] =
            rate(static_cast<double>(report.decodedTokens), report.decodeSeconds);
        return result;
    }
    result.ids = report.results.front().ids;
    result.logits = promptLogits(model, generate.cache, prompts.requests.front().prompt);
    return result;
}

/// Of the first answer against the second, which is the reference.
Json agreementJson(const Answer& first, const Answer& second, std::int64_t vocab) {
    std::size_t equal = 0;
    const std::size_t tokens = std::min(first.ids.size(), second.ids.size());
    std::optional<std::size_t> different;
    for (std::size_t i = 0; i < tokens; ++i) {
        const bool same = first.ids[i] == second.ids[i];
        equal += same ? 1 : 0;
        different = same || different ? different : std::optional(i);
    }
    float largest = 0;
    const std::size_t values = std::min(first.logits.size(), second.logits.size());
    for (std::size_t i = 0; i < values; ++i) {
        largest = std::max(largest, std::abs(first.logits[i] - second.logits[i]));
    }
    Json out = {{"tokens", std::max(first.ids.size(), second.ids.size())},
                {"tokens_equal", equal},
                {"logit_positions", values / static_cast<std::size_t>(vocab)},
                {"largest_logit_difference", largest}};
    if (different) {
        out["first_difference"] = *different;
    }
    if (values > 0) {
        const auto [low, high] = std::minmax_element(second.logits.begin(), second.logits.end());
        out["logit_spread"] = *high - *low;
    }
    return out;
}

} // namespace

void measureAfterLoad(const Run& run, const ModelSource& source, nlohmann::json& variants) {
    if (!hasInput(run.spec)) {
        return;
    }
    // A context of its own for each answer and nothing traced: the run's memory and times stay those of the loads.
    WorkloadSinks quiet;
    quiet.progress = run.sinks.progress;
    const Run silent{run.spec, quiet, run.stop, run.metrics};
    const bool meta = run.spec.flag("plan") || run.spec.text("backend") == "meta";
    const Prompts prompts = makePrompts(silent, source, meta);
    std::vector<Answer> answers;
    for (Json& variant : variants) {
        if (!variant.value("fits", true)) {
            continue;
        }
        Json after = Json::object();
        try {
            answers.push_back(answer(silent, source, prompts, variant["weights"], after));
        } catch (const base::OutOfMemory& error) {
            after = {{"out_of_memory", error.message()}};
        }
        variant["after_load"] = std::move(after);
    }
    if (!meta && answers.size() == 2) {
        run.metrics["agreement"] = agreementJson(answers[0], answers[1], source.config.vocab);
    }
}

} // namespace vitrine::engine
