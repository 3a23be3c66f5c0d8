// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "engine/workload/common/rank_metrics.h"
#include "engine/workload/common/run_adapter.h"
#include "engine/workload/common/run_speculation.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "engine/workload/generate/generate_plan.h"
#include "engine/workload/roofline/decode_roofline.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 10> kGenerateResults = {
    result::kRunSet,  result::kMemorySet, result::kLoadingSet, result::kKernelSet,      result::kPlanSet,
    result::kRateSet, result::kAnswerSet, result::kKvSet,      result::kSpeculationSet, result::kRooflineSet};

using Json = nlohmann::json;

constexpr auto kGenerateSharedKeys = withSpeculationKeys(std::to_array<std::string_view>(
    {"adapter", "chat", "tokens_file", "batch", "logprobs", "cache", "kv_dtype", "prefill_chunk", "repeat"}));
constexpr std::array<std::string_view, 3> kGenerateViews = {"run", "kv-cache", "compare"};

double rate(std::int64_t count, double seconds) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string textOf(const GenerateResult& result, const std::string& channel) {
    const auto it = result.channels.find(channel);
    return it == result.channels.end() ? std::string() : it->second;
}

Json resultJson(const GenerateResult& result, bool hasText, bool logprobs) {
    Json out = {{"prompt_tokens", result.promptTokens},
                {"ids", result.ids},
                {"text", hasText ? Json(textOf(result, "final")) : Json()},
                {"finish_reason", finishReasonName(result.finish)}};
    if (result.channels.size() > 1 || (hasText && !result.channels.empty() && !result.channels.contains("final"))) {
        out["channels"] = result.channels;
    }
    if (logprobs) {
        out["logprobs"] = result.logprobs;
        Json top = Json::array();
        for (const auto& alternatives : result.top) {
            Json row = Json::array();
            for (const auto& [id, logprob] : alternatives) {
                row.push_back({{"id", id}, {"logprob", logprob}});
            }
            top.push_back(std::move(row));
        }
        out["top_logprobs"] = std::move(top);
    }
    return out;
}

void addReport(Json& metrics, const GenerateReport& report, bool hasText, bool logprobs) {
    std::int64_t generated = 0, prompts = 0;
    Json requests = Json::array();
    FinishCounts endings{};
    for (const GenerateResult& result : report.results) {
        generated += static_cast<std::int64_t>(result.ids.size());
        prompts += result.promptTokens;
        ++endings[static_cast<std::size_t>(result.finish)];
        requests.push_back(resultJson(result, hasText, logprobs));
    }
    if (!requests.empty()) {
        metrics.update(requests.front());
    }
    if (requests.size() > 1) {
        metrics[result::kRequests.key] = std::move(requests);
        metrics[result::kFinishReasons.key] = finishCountsJson(endings);
    }
    metrics[result::kGeneratedTokens.key] = generated;
    if (report.prefilledTokens < prompts) {
        metrics[result::kPrefilledTokens.key] = report.prefilledTokens;
    }
    metrics[result::kDecodeSteps.key] = report.decodeSteps;
    metrics[result::kPrefillSeconds.key] = report.prefillSeconds;
    if (report.prefillCompileSeconds) {
        metrics[result::kPrefillCompileSeconds.key] = *report.prefillCompileSeconds;
    }
    metrics[result::kDecodeSeconds.key] = report.decodeSeconds;
    metrics[result::kDecodeTokensPerSecond.key] = rate(report.decodedTokens, report.decodeSeconds);
    metrics[result::kKvBytes.key] = report.kvBytes;
    metrics[result::kKvPageBytes.key] = report.kvPageBytes;
    Json groups = Json::object();
    for (const auto& [name, bytes] : report.kvGroupBytes) {
        groups[name] = bytes;
    }
    metrics[result::kKvPageBytesByGroup.key] = std::move(groups);
}

/// Passes tokens on, with live values a few times a second.
class TokenForwarder {
public:
    TokenForwarder(const WorkloadSinks& sinks, const kernels::Context& context, const GenerateReport& report,
                   const Tokenizer* tokenizer)
        : sinks_(sinks), context_(context), report_(report), tokenizer_(tokenizer) {}

    void operator()(const GeneratedToken& token) {
        if (sinks_.token) {
            StreamedToken out = streamed(token);
            if (tokenizer_ != nullptr) {
                for (const auto& [id, logprob] : token.top) {
                    out.topTexts.push_back(tokenizer_->decode(std::span(&id, 1)));
                }
            }
            sinks_.token(out);
        }
        ++tokens_;
        const base::TimeNs now = context_.clock().now();
        if (firstToken_ < 0) {
            firstToken_ = now;
        }
        constexpr base::TimeNs kInterval = 100'000'000;
        if (sinks_.metric && now - lastMetric_ >= kInterval) {
            lastMetric_ = now;
            sinks_.metric("kv_bytes", static_cast<double>(report_.kvPageBytes));
            sinks_.metric("decode_tokens", static_cast<double>(tokens_));
            sinks_.metric("tokens_per_second", rate(tokens_ - 1, static_cast<double>(now - firstToken_) * 1e-9));
        }
    }

private:
    const WorkloadSinks& sinks_;
    const kernels::Context& context_;
    const GenerateReport& report_;
    const Tokenizer* tokenizer_;
    std::int64_t tokens_ = 0;
    base::TimeNs firstToken_ = -1;
    base::TimeNs lastMetric_ = -1'000'000'000;
};

void runGenerate(const Run& run) {
    Json& metrics = run.metrics;
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    addContextMetrics(run, *context);
    Prompts prompts = makePrompts(run, source, !context->can().computesValues);
    const bool hasText = prompts.tokenizer != nullptr;
    const bool logprobs = run.spec.integer("logprobs") > 0;
    GenerateReport report;
    std::optional<DecodeRoofline> roofline;
    try {
        const ModelOptions options = modelOptions(run, *context, run.spec.text("weights"));
        Model model(*context, source, options, run.sinks.progress);
        addLoadMetrics(metrics, model.loadReport());
        const std::unique_ptr<Adapter> adapter = loadAdapter(run, model);
        GenerateOptions generate = generateOptions(run, options);
        generate.answerForm = prompts.answerForm;
        reportKvMetrics(run, model.config(), generate.cache);
        generate.progress = run.sinks.progress;
        const RunSpeculation speculation(run, source, *context, generate.cache, std::nullopt);
        generate.speculation = speculation.speculation();
        ExpertUse use;
        if (prompts.requests.size() > 1 && model.weightBytes().moeLayers > 0) { // of one the number is known
            generate.expertUse = &use;
            generate.countedSteps = 1;
        }
        Generator generator(model, prompts.tokenizer, generate);
        std::vector<double> prefill, compiling, decode, rates;
        for (std::int64_t i = 0; i < run.repeats(); ++i) {
            // Repetitions are for the times; their tokens are the same.
            generator.run(prompts.requests, report,
                          i == 0 ? TokenCallback(TokenForwarder(run.sinks, *context, report, prompts.tokenizer.get()))
                                 : TokenCallback());
            prefill.push_back(report.prefillSeconds);
            compiling.push_back(report.prefillCompileSeconds.value_or(0));
            decode.push_back(report.decodeSeconds);
            rates.push_back(rate(report.decodedTokens, report.decodeSeconds));
        }
        report.prefillSeconds = median(prefill);
        addRepeats(metrics, std::string(result::kPrefillSeconds.key), prefill);
        if (report.prefillCompileSeconds) {
            report.prefillCompileSeconds = median(compiling);
            addRepeats(metrics, std::string(result::kPrefillCompileSeconds.key), compiling);
        }
        report.decodeSeconds = median(decode);
        addRepeats(metrics, std::string(result::kDecodeSeconds.key), decode);
        addRepeats(metrics, std::string(result::kDecodeTokensPerSecond.key), rates);
        speculation.addMetrics(metrics, report.speculation);
        if (!speculation.speculation().on()) { // steps that check drafts are other steps
            roofline = decodeRoofline(model, report, generate);
        }
    } catch (...) {
        addReport(metrics, report, hasText, logprobs);
        addMemoryMetrics(metrics, *context);
        addRankMetrics(metrics, *context);
        addKernelMetrics(metrics, *context);
        throw;
    }
    addReport(metrics, report, hasText, logprobs);
    addMemoryMetrics(metrics, *context);
    addRankMetrics(metrics, *context);
    addKernelMetrics(metrics, *context);
    if (roofline) {
        addRooflineMetrics(run, *context, *roofline);
    }
}

void checkGenerate(const Experiment& experiment, const std::string& name) {
    checkInput(experiment, name, !(experiment.isPlan() && experiment.flag("max_context")));
    checkSpeculation(experiment, name);
}

/// Text was streamed while it came. Without a tokenizer there is none: the ids are the result.
std::optional<std::string> generatedWords(const Experiment& experiment, const Json& metrics) {
    if (experiment.isPlan() || metrics.value(result::kBackend.key, "") == "meta") {
        return std::nullopt;
    }
    const bool onlyIds = metrics.contains(result::kText.key) && metrics[result::kText.key].is_null() &&
                         metrics.contains(result::kIds.key);
    return onlyIds ? metrics[result::kIds.key].dump() + "\n" : std::string();
}

} // namespace

StreamedToken streamed(const GeneratedToken& token) {
    StreamedToken out;
    out.request = token.request;
    out.index = token.index;
    out.id = token.id;
    out.text = token.text;
    out.channel = token.channel;
    out.logprob = token.logprob;
    out.top = token.top;
    out.time = token.time;
    return out;
}

constinit const Workload kGenerateWorkload = {
    .name = "generate",
    .title = "Generate",
    .optionSets = kModelOptions | kWeightsOptions | kDeviceOptions | kRankOptions | kRunOptions | kPromptOptions |
                  kAnswerOptions | kTextOptions,
    .optionKeys = kGenerateSharedKeys,
    .check = checkGenerate,
    .needsPrompt = true,
    .searches = true,
    .run = runGenerate,
    .plan = planGenerate,
    .planHelp = "Memory and time of a generation",
    .planExample = "vitrine plan generate --model synthetic:gpt-oss-20b --prompt-length 131072 --json",
    .results = kGenerateResults,
    .resultText = generatedWords,
    .formView = "run",
    .formPlace = 1,
    .views = kGenerateViews,
};

} // namespace vitrine::engine
