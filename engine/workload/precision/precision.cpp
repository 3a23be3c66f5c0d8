// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workload precision: what formats would do to the weights of a model and to its probabilities, without writing a
// model.

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/units.h"
#include "engine/quant/conversion_target.h"
#include "engine/workload/common/logit_steps.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/convert/conversion_plan.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "engine/workload/precision/keep_parts.h"
#include "engine/workload/precision/lab_text.h"
#include "engine/workload/precision/model_rounding.h"
#include "engine/workload/precision/planned_rate.h"
#include "engine/workload/precision/text_scorer.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr base::TimeNs kShownEvery = 500'000'000;

constexpr std::array<ResultSet, 6> kPrecisionResults = {result::kRunSet,    result::kMemorySet, result::kLoadingSet,
                                                        result::kKernelSet, result::kRateSet,   result::kPrecisionSet};
constexpr std::array<std::string_view, 3> kPrecisionSharedKeys = {"ignore", "kv_dtype", "prefill_chunk"};
constexpr std::array<std::string_view, 1> kPrecisionViews = {"precision"};

constexpr std::array kPrecisionOptions = {
    OptionSpec{"formats", OptionType::Text, kComparedTargets, "", 0, 0, "", "", "Precision",
               "Formats with commas between them, each perhaps with a group size: int4:32, and a rule: int4:32:seven; "
               "bf16 is the "
               "reference"},
    OptionSpec{
        "text_file", OptionType::Path, "", "", 0, 0, "", "", "Precision",
        "Text whose tokens are scored in each format; unset: precision.txt of the model's folder, else a text of "
        "the program"},
    OptionSpec{"text_tokens", OptionType::Integer, "1024", "", 0, 1 << 20, "", "tokens", "Precision",
               "How many tokens of the text are scored; 0: only the errors of the weights"},
    OptionSpec{"keep_effects", OptionType::Bool, "false", "", 0, 0, "", "", "Precision",
               "Score each format again with each role of weights, and with its worst layers, in BF16"},
};

void checkPrecision(const Experiment& experiment, const std::string& name) {
    if (experiment.text("model").starts_with("synthetic:")) {
        failOption(name, "model", "precision reads a model's files; write a synthetic model with synthesize first");
    }
    if (experiment.flag("keep_effects") && experiment.integer("text_tokens") == 0) {
        failOption(name, "keep_effects", "needs a text; set text_tokens to 2 or more, or leave it out");
    }
    if (experiment.integer("text_tokens") == 1) {
        failOption(name, "text_tokens", "must be 0, or 2 and more: the first token has nothing before it");
    }
    checkIgnored(experiment, name);
    try {
        precisionFormats(experiment.text("formats"));
    } catch (const base::BadInput& error) {
        throw base::BadInput(fmt::format("{}: {}", name, error.message()));
    }
}

/// A run of the workload, step by step.
class PrecisionRun {
public:
    PrecisionRun(const Run& run, const ModelSource& source, kernels::Context& context)
        : run_(run), source_(source), context_(context),
          rounding_(source, precisionFormats(run.spec.text("formats")), run.spec.texts("ignore"), context.hostPool()),
          result_(rounding_.emptyResult()) {}

    void work() {
        planRates();
        readText();
        if (result_.text.ids.empty()) {
            for (std::size_t format = 1; format < result_.formats.size(); ++format) {
                roundTo(format, nullptr);
            }
        } else {
            scoreAll();
        }
        run_.metrics.update(precisionJson(result_));
        if (!source_.folder.empty()) { // its matrices are looked at later, from wherever that may be
            run_.metrics[result::kModelFolder.key] = std::filesystem::absolute(source_.folder).string();
        }
        run_.metrics[result::kScoredTokens.key] = result_.text.scored();
    }

private:
    void roundTo(std::size_t format, WeightWriter* writer) {
        rounding_.round(format, result_, writer, run_.stop, run_.sinks.progress, [this] { showWhatIsKnown(); });
    }

    /// Whoever looks at the run while it goes on sees the errors that are known. They are many numbers, so writing them
    /// down takes a twentieth of the time at most. The text is no part of it before all tokens are scored.
    void showWhatIsKnown() {
        const base::TimeNs now = context_.clock().now();
        if (!run_.sinks.fact || now < nextShown_) {
            return;
        }
        PrecisionResult known = result_;
        known.text = {};
        known.tokens.clear();
        const Json facts = precisionJson(known);
        for (const auto& [key, value] : facts.items()) {
            run_.sinks.fact(key, value);
        }
        nextShown_ = now + std::max(kShownEvery, 20 * (context_.clock().now() - now));
    }

    ModelOptions options() const { return modelOptions(run_, context_, "dequantized"); }

    std::optional<PlannedRate> rate(std::size_t format, const std::vector<std::string>& ignored) {
        const ModelOptions model = options();
        return plannedRate(source_, rounding_.formats()[format], ignored, context_.traits(), model,
                           generateOptions(run_, model).cache, run_.stop);
    }

    void planRates() {
        for (std::size_t format = 0; format < result_.formats.size(); ++format) {
            const std::optional<PlannedRate> planned = rate(format, run_.spec.texts("ignore"));
            if (planned) {
                result_.formats[format].plannedRate = planned->decode;
            }
            if (planned && format == 0) {
                run_.metrics[result::kPlannedPrefillRate.key] = planned->prefill;
            }
        }
    }

    /// With the part in BF16. Nothing where the format itself has no rate.
    std::optional<double> rateWith(std::size_t format, const KeepPart& part) {
        if (!result_.formats[format].plannedRate) {
            return std::nullopt;
        }
        std::vector<std::string> ignored = run_.spec.texts("ignore");
        ignored.push_back(keepPattern(result_, part));
        const std::optional<PlannedRate> planned = rate(format, ignored);
        return planned ? std::optional(planned->decode) : std::nullopt;
    }

    /// A model without a tokenizer, and no wish for a text, leave it empty.
    void readText() {
        const std::int64_t limit = contextLimit(source_.config);
        std::int64_t tokens = run_.spec.integer("text_tokens");
        tokens = limit > 0 ? std::min(tokens, limit) : tokens;
        if (tokens < 2) {
            run_.metrics[result::kNotScored.key] = "text_tokens is 0";
            return;
        }
        if (source_.tokenizerFile.empty()) {
            if (run_.spec.has("text_file")) {
                throw base::BadInput(source_.name + ": tokenizer.json: missing; without it no text can be scored, so "
                                                    "leave out text_file");
            }
            run_.metrics[result::kNotScored.key] = "the model has no tokenizer";
            return;
        }
        tokenizer_ = Tokenizer::load(source_.tokenizerFile);
        LabText text = labText(tokenizer_, textChoice(source_, run_.spec.text("text_file")), tokens);
        if (const auto largest = std::ranges::max(text.ids); largest >= source_.config.vocab) {
            throw base::BadInput(fmt::format("{}: tokenizer.json: gives the text a token {}, and the model has {}",
                                             source_.name, largest, source_.config.vocab));
        }
        result_.text = std::move(text);
        result_.tokens.resize(result_.formats.size() * result_.text.ids.size());
    }

    void scoreAll() {
        Model model(context_, source_, options(), run_.sinks.progress);
        addLoadMetrics(run_.metrics, model.loadReport());
        TextScorer scorer(model, result_.text.ids, generateOptions(run_, model.options()).cache,
                          logitStepTokens(context_.traits(), run_.spec.integer("prefill_chunk"), source_.config));
        score(0, scorer);
        WeightWriter writer(model);
        for (std::size_t format = 1; format < result_.formats.size(); ++format) {
            roundTo(format, &writer);
            score(format, scorer);
            if (run_.spec.flag("keep_effects")) {
                keepEffects(format, scorer, writer);
            }
        }
        addCandidatePieces(*tokenizer_, result_.tokens, result_.text);
    }

    std::span<TokenEffect> tokensOf(std::size_t format) {
        const std::size_t count = result_.text.ids.size();
        return std::span(result_.tokens).subspan(format * count, count);
    }

    void score(std::size_t format, TextScorer& scorer) {
        FormatEffect& effect = result_.formats[format];
        const kernels::TraceScope phase(context_.tracer(), base::ScopeKind::Phase, kScorePhase,
                                        static_cast<std::int32_t>(format),
                                        static_cast<std::int64_t>(result_.text.scored()));
        const std::vector<TokenEffect> tokens =
            scorer.score(fmt::format("Scoring the text in {}", effect.title), run_.sinks.progress);
        std::ranges::copy(tokens, tokensOf(format).begin());
        const TextMeans means = textMeans(tokens, tokensOf(0));
        effect.klMean = means.kl;
        effect.topOne = means.topOne;
        effect.perplexity = means.perplexity;
    }

    void keepEffects(std::size_t format, TextScorer& scorer, WeightWriter& writer) {
        std::vector<KeepEffect> effects;
        for (KeepEffect& effect : keepCandidates(result_, format)) {
            rounding_.putPart(format, effect.part, false, writer, run_.stop);
            const kernels::TraceScope phase(context_.tracer(), base::ScopeKind::Phase, "score a kept part");
            const std::string what = fmt::format("Scoring the text in {} with {} in BF16",
                                                 result_.formats[format].title, keepTitle(effect.part));
            effect.klMean = textMeans(scorer.score(what, run_.sinks.progress), tokensOf(0)).kl;
            effect.klSaved = result_.formats[format].klMean.value_or(0) - effect.klMean;
            effect.plannedRate = rateWith(format, effect.part);
            rounding_.putPart(format, effect.part, true, writer, run_.stop);
            effects.push_back(std::move(effect));
        }
        std::ranges::stable_sort(effects, std::greater{}, &KeepEffect::klSavedPerGib);
        result_.keep.insert(result_.keep.end(), effects.begin(), effects.end());
    }

    const Run& run_;
    const ModelSource& source_;
    kernels::Context& context_;
    ModelRounding rounding_;
    PrecisionResult result_;
    std::shared_ptr<const Tokenizer> tokenizer_;
    base::TimeNs nextShown_ = 0;
};

void runPrecision(const Run& run) {
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    if (!context->can().computesValues) {
        throw base::Unsupported("backend: meta computes no values, so nothing can be compared; use cpu or cuda");
    }
    warnOfIgnored(source, run.spec.texts("ignore"));
    runMeasured(run, *context, [&] {
        const base::TimeNs begin = context->clock().now();
        PrecisionRun(run, source, *context).work();
        run.metrics[result::kSeconds.key] = static_cast<double>(context->clock().now() - begin) * 1e-9;
    });
}

/// The fields of rows as a table, with their words above them.
std::string fieldsTable(const Json& rows, std::span<const ResultField* const> fields) {
    std::vector<std::vector<std::string>> table(1);
    for (const ResultField* field : fields) {
        table.front().emplace_back(field->words);
    }
    for (const Json& row : rows) {
        std::vector<std::string>& cells = table.emplace_back();
        for (const ResultField* field : fields) {
            const Json* value = valueOf(row, *field);
            cells.push_back(value == nullptr || value->is_null() ? "-" : resultValueText(field->key, *value));
        }
    }
    return tableText(table);
}

/// The signal to noise of each role in each format, routers and what else is kept in brackets.
std::string rolesTable(const PrecisionResult& result) {
    std::vector<std::string> roles;
    for (const LabWeight& weight : result.weights) {
        if (std::ranges::find(roles, weight.role) == roles.end()) {
            roles.push_back(weight.role);
        }
    }
    std::vector<std::vector<std::string>> table{{"signal to noise, dB"}};
    for (std::size_t format = 1; format < result.formats.size(); ++format) {
        table.front().push_back(result.formats[format].title);
    }
    for (const std::string& role : roles) {
        std::vector<std::string>& row = table.emplace_back(1, role);
        for (std::size_t format = 1; format < result.formats.size(); ++format) {
            RoundingError sum;
            bool kept = false;
            for (std::size_t i = 0; i < result.weights.size(); ++i) {
                const WeightEffect& effect = result.effect(format, i);
                if (result.weights[i].role == role) {
                    sum.add(effect.error);
                    kept = kept || effect.kept;
                }
            }
            const std::optional<double> noise = sum.signalToNoise();
            const std::string text = noise ? fmt::format("{:.2f}", *noise) : "-";
            row.push_back(kept && noise ? fmt::format("({})", text) : text);
        }
    }
    return tableText(table);
}

std::optional<std::string> precisionWords(const Experiment&, const Json& metrics) {
    const std::optional<PrecisionResult> result = precisionFromJson(metrics);
    if (!result) {
        return std::nullopt; // it did not come to its end
    }
    constexpr std::array<const ResultField*, 8> kFields = {
        &result::kTitle,      &result::kBitsPerWeight, &result::kModelBytes, &result::kSignalToNoise,
        &result::kDivergence, &result::kTopOne,        &result::kPerplexity, &result::kPlannedRate};
    constexpr std::array<const ResultField*, 7> kKept = {
        &result::kFormat,     &result::kRole,       &result::kFirstLayer,     &result::kLastLayer,
        &result::kBytesAdded, &result::kDivergence, &result::kDivergenceSaved};
    std::string words = fieldsTable(rowsOf(metrics, result::kFormats), kFields) + "\n" + rolesTable(*result);
    if (!result->keep.empty()) {
        words += "\nWhat keeping weights in BF16 saves, the most for each byte first:\n" +
                 fieldsTable(*valueOf(metrics, result::kKeep), kKept);
    }
    const std::string text = result->text.ids.empty()
                                 ? "No text was scored: " + textOf(metrics, result::kNotScored)
                                 : fmt::format("{} tokens scored of {}", result->text.scored(), result->text.name);
    return words +
           fmt::format("\n{}; {} matrices. In brackets: weights that stay BF16.\n", text, result->weights.size());
}

} // namespace

constinit const Workload kPrecisionWorkload = {
    .name = "precision",
    .title = "Precision",
    .optionSets = kModelOptions | kDeviceOptions | kRunOptions,
    .optionKeys = kPrecisionSharedKeys,
    .ownOptions = kPrecisionOptions,
    .ownOptionsBefore = "ignore",
    .check = checkPrecision,
    .run = runPrecision,
    .results = kPrecisionResults,
    .resultText = precisionWords,
    .formView = "run",
    .formPlace = 4,
    .views = kPrecisionViews,
};

} // namespace vitrine::engine
