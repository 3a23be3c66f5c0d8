// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/fixed_prompts.h"

#include <algorithm>
#include <fmt/format.h>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "base/strict_json.h"
#include "base/text_lines.h"
#include "engine/chat/chat_message.h"
#include "engine/generation/generator.h"
#include "engine/workload/experiment/workloads.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostPrompts = 256;
constexpr std::int64_t kMostAnswers = 20'000; ///< of a run: its result lists them all

FixedPrompt textPrompt(const std::string& text) {
    return {text, {ChatMessage("user", text)}};
}

FixedPrompt promptOfLine(const nlohmann::ordered_json& row, const std::string& place) {
    if (row.is_object() && row.contains("messages")) {
        FixedPrompt prompt{{}, readChatMessages(row["messages"], place + ": messages")};
        prompt.text = prompt.messages.back().text();
        return prompt;
    }
    if (!row.is_object() || !row.contains("prompt") || !row["prompt"].is_string()) {
        throw base::BadInput(place + ": prompt: missing; write {\"prompt\": \"...\"} or {\"messages\": [...]}");
    }
    return textPrompt(row["prompt"].get<std::string>());
}

Experiment asGenerate(const Run& run) {
    Experiment out = run.spec.as(kGenerateWorkload);
    out.set("max_new_tokens", run.spec.integer("sample_tokens"));
    return out;
}

/// The answer; of a model that did not come so far, what it thought.
std::string answerText(const GenerateResult& result) {
    std::string thought;
    for (const auto& [channel, text] : result.channels) {
        if (channel == "final" && !text.empty()) {
            return text;
        }
        thought += text;
    }
    return thought;
}

/// Requests with the tokenizer that made them.
struct AskedPrompts {
    std::vector<GenerateRequest> requests;
    std::shared_ptr<const Tokenizer> tokenizer;
    AnswerForm answerForm = AnswerForm::Plain;
};

AskedPrompts makeRequests(const Run& asked, const ModelSource& source, const std::vector<FixedPrompt>& prompts,
                          bool meta) {
    RequestMaker maker(asked, source, meta);
    try {
        maker.prepareText();
    } catch (const base::Unsupported&) { // no chat format fits: the model takes plain text
    } catch (const base::BadInput&) {
        throw base::BadInput(
            fmt::format("sample_prompts: {} has no tokenizer, so it cannot be asked; leave them out", source.name));
    }
    AskedPrompts out;
    for (const FixedPrompt& prompt : prompts) {
        out.requests.push_back(maker.hasChat() ? maker.fromChat(prompt.messages, maker.chatOptions())
                                               : maker.fromRawText(prompt.text));
    }
    out.tokenizer = maker.tokenizer();
    out.answerForm = maker.answerForm();
    return out;
}

/// Searches price the same prompts again and again, and a large tokenizer takes a second to load: the last ones are
/// remembered. Any thread.
AskedPrompts plannedRequests(const Run& asked, const ModelSource& source, const std::vector<FixedPrompt>& prompts) {
    static std::mutex mutex;
    static std::string lastKey;
    static AskedPrompts last;
    std::string key = source.tokenizerFile;
    for (const char* option : {"chat_format", "chat_template", "chat_template_kwargs", "date", "max_new_tokens"}) {
        key += '\n' + asked.spec.valueText(option);
    }
    for (const FixedPrompt& prompt : prompts) {
        for (const ChatMessage& message : prompt.messages) {
            key += '\n' + message.members().dump();
        }
    }
    const std::lock_guard lock(mutex);
    if (key != lastKey || last.requests.empty()) {
        last = makeRequests(asked, source, prompts, true);
        lastKey = std::move(key);
    }
    return last;
}

} // namespace

std::vector<FixedPrompt> readFixedPrompts(const std::vector<std::string>& items) {
    std::vector<FixedPrompt> prompts;
    for (const std::string& item : items) {
        if (!item.ends_with(".jsonl")) {
            prompts.push_back(textPrompt(item));
            continue;
        }
        base::forTextLines(item, [&](std::string_view line, std::int64_t number) {
            prompts.push_back(promptOfLine(base::parseOrderedJson(line, item, base::JsonLimits{.firstLine = number}),
                                           fmt::format("{}: line {}", item, number)));
        });
    }
    for (const FixedPrompt& prompt : prompts) {
        if (prompt.text.empty()) {
            throw base::BadInput("sample_prompts: one is empty; give it a text");
        }
    }
    if (prompts.size() > kMostPrompts) {
        throw base::BadInput(fmt::format("sample_prompts: {} are more than the {} that a run answers; name fewer",
                                         prompts.size(), kMostPrompts));
    }
    return prompts;
}

FixedPrompts::FixedPrompts(const Run& run, const ModelSource& source, Model& model, std::int64_t steps)
    : spec_(asGenerate(run)), run_(run), model_(model), every_(run.spec.integer("sample_every")), steps_(steps),
      prompts_(readFixedPrompts(run.spec.texts("sample_prompts"))) {
    if (prompts_.empty()) {
        return;
    }
    const auto count = static_cast<std::int64_t>(prompts_.size());
    if (const std::int64_t sets = 2 + (every_ > 0 ? steps / every_ : 0); sets > kMostAnswers / count) {
        throw base::BadInput(fmt::format("sample_every: {} answers are more than the {} that a run keeps; answer less "
                                         "often, or fewer prompts",
                                         sets * count, kMostAnswers));
    }
    Json ignored;
    const Run asked{spec_, run.sinks, run.stop, ignored, run.today};
    AskedPrompts made = model.context().can().computesValues ? makeRequests(asked, source, prompts_, false)
                                                             : plannedRequests(asked, source, prompts_);
    const std::int64_t positions = contextLimit(source.config);
    for (const GenerateRequest& request : made.requests) {
        const auto tokens = static_cast<std::int64_t>(request.prompt.size());
        if (positions > 0 && tokens + request.maxNewTokens > positions) {
            throw base::BadInput(fmt::format("sample_prompts: a prompt of {} tokens and {} new ones are more than the "
                                             "model's context of {}; shorten it, or lower sample_tokens",
                                             tokens, request.maxNewTokens, positions));
        }
    }
    requests_ = std::move(made.requests);
    tokenizer_ = std::move(made.tokenizer);
    answerForm_ = made.answerForm;
}

bool FixedPrompts::due(std::int64_t step) const {
    return !empty() && (step == 0 || step == steps_ || (every_ > 0 && step % every_ == 0));
}

void FixedPrompts::resume(const Json& answers) {
    for (const Json& row : answers) {
        const std::optional<std::int64_t> step = row.is_object() ? base::integerAt(row, "step") : std::nullopt;
        const std::string prompt = step ? base::textAt(row, "prompt") : std::string();
        if (step && std::ranges::find(prompts_, prompt, &FixedPrompt::text) != prompts_.end()) {
            answers_.push_back({*step, prompt, base::textAt(row, "text"), base::integerAt(row, "tokens").value_or(0),
                                base::textAt(row, "finish_reason")});
        }
    }
}

bool FixedPrompts::answered(std::int64_t step) const {
    return static_cast<std::size_t>(std::ranges::count(answers_, step, &FixedAnswer::step)) == prompts_.size();
}

Json FixedPrompts::answers() const {
    Json rows = Json::array();
    for (const FixedAnswer& each : answers_) {
        rows.push_back({{"step", each.step},
                        {"prompt", each.prompt},
                        {"text", each.text},
                        {"tokens", each.tokens},
                        {"finish_reason", each.finish}});
    }
    return rows;
}

GenerateReport FixedPrompts::generate() {
    Json ignored;
    const Run asked{spec_, run_.sinks, run_.stop, ignored, run_.today};
    GenerateOptions options = generateOptions(asked, model_.options());
    options.answerForm = answerForm_;
    options.jumpEqualSteps = !model_.context().can().computesValues;
    GenerateReport report;
    Generator(model_, tokenizer_, options).run(requests_, report, {});
    return report;
}

void FixedPrompts::answer(std::int64_t step) {
    kernels::Context& context = model_.context();
    const kernels::TraceScope phase(context.tracer(), base::ScopeKind::Phase, "answers",
                                    static_cast<std::int32_t>(step));
    context.memory().trim(); // what training keeps for its next step
    GenerateReport report;
    try {
        report = generate();
    } catch (...) {
        model_.giveBackSteps();
        throw;
    }
    model_.giveBackSteps();
    context.memory().trim();
    if (!context.can().computesValues) {
        return;
    }
    std::erase_if(answers_, [&](const FixedAnswer& each) { return each.step == step; });
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
        const GenerateResult& result = report.results[i];
        answers_.push_back({step, prompts_[i].text, answerText(result), static_cast<std::int64_t>(result.ids.size()),
                            std::string(finishReasonName(result.finish))});
    }
}

} // namespace vitrine::engine
