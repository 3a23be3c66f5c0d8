// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Seconds from a question to the planner's first answer and to its whole answer. Argument: a part of the name of the
// questions to ask; without one all are asked.

#include "engine/workload/planner/what_if.h"

#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace {

using namespace vitrine;
using Json = nlohmann::json;

struct Question {
    std::string_view name;
    Json options;
};

Json training(const char* model, int tokens, int rows, const char* device) {
    return {{"workload", "finetune"},  {"model", model}, {"train", "attention"},    {"checkpoint", "offload"},
            {"prompt_length", tokens}, {"batch", rows},  {"device_profile", device}};
}

Json answering(const char* model, int tokens, int newTokens, int copies, const char* device) {
    return {{"workload", "generate"},      {"model", model},  {"prompt_length", tokens},
            {"max_new_tokens", newTokens}, {"batch", copies}, {"device_profile", device}};
}

Json batch(const char* model, int requests, const char* prompt, const char* answer, const char* device) {
    return {{"workload", "batch"}, {"model", model},          {"trace", "uniform"},   {"requests", requests},
            {"slots", requests},   {"prompt_tokens", prompt}, {"new_tokens", answer}, {"device_profile", device}};
}

std::vector<Question> questions() {
    return {{"train gpt-oss-20b, 1 x 131,072", training("synthetic:gpt-oss-20b", 131072, 1, "l4")},
            {"train gpt-oss-20b, 16 x 32,768", training("synthetic:gpt-oss-20b", 32768, 16, "l4")},
            {"train gpt-oss-20b, 32 x 65,536", training("synthetic:gpt-oss-20b", 65536, 32, "h100-80gb")},
            {"train llama-3.1-8b, 16 x 8,192", training("synthetic:llama-3.1-8b", 8192, 16, "rtx-4090")},
            {"train qwen3-30b-a3b, 32 x 8,192", training("synthetic:qwen3-30b-a3b", 8192, 32, "h100-80gb")},
            {"generate gpt-oss-20b, 1,000", answering("synthetic:gpt-oss-20b", 1000, 200, 1, "t4")},
            {"generate gpt-oss-20b, 120,000", answering("synthetic:gpt-oss-20b", 120000, 1000, 1, "t4")},
            {"generate llama-3.1-8b, 64 x 8,192", answering("synthetic:llama-3.1-8b", 8192, 1000, 64, "h100-80gb")},
            {"batch gpt-oss-20b, 8", batch("synthetic:gpt-oss-20b", 8, "16-2048", "16-512", "t4")},
            {"batch gpt-oss-20b, 64", batch("synthetic:gpt-oss-20b", 64, "16-8192", "16-1024", "rtx-4090")},
            {"batch gpt-oss-20b, 256", batch("synthetic:gpt-oss-20b", 256, "16-8192", "16-1024", "h100-80gb")},
            {"batch qwen3-30b-a3b, 64", batch("synthetic:qwen3-30b-a3b", 64, "16-8192", "16-1024", "h100-80gb")},
            {"batch llama-3.1-8b, 256", batch("synthetic:llama-3.1-8b", 256, "16-2048", "16-512", "h100-80gb")}};
}

std::string textOf(const engine::OptionValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
        return *text;
    }
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
        return fmt::format("{}", *number);
    }
    return "on";
}

void ask(const Question& question) {
    Json spec = question.options;
    spec.update({{"vitrine", 1}, {"backend", "meta"}});
    const engine::Experiment experiment = engine::Experiment::parse(spec, "bench");
    const auto begin = std::chrono::steady_clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
    double first = 0;
    engine::WhatIfPlanner planner;
    const engine::WhatIf answer = planner.answer(experiment, engine::contextOf(experiment).value(), {},
                                                 [&](const engine::WhatIf&) { first = first > 0 ? first : passed(); });
    const double whole = passed();
    std::string change = answer.set().price.fits ? "fits" : "nothing helps";
    if (!answer.changes.empty()) {
        const engine::PlanChange& best = answer.changes.front();
        change = best.price.fits ? "" : "not enough: ";
        for (const engine::OptionEdit& edit : best.edits) {
            change += (change.empty() ? "" : " ") + edit.key + "=" + textOf(edit.value);
        }
    }
    fmt::print("{:36} first {:6.2f} s, whole {:6.2f} s, {:3} plans, {:.3f} GiB, {:.5f} s, {}\n", question.name, first,
               whole, answer.plans, static_cast<double>(answer.set().price.reserved) / (1 << 30),
               answer.set().price.seconds, change);
    std::fflush(stdout);
}

} // namespace

int main(int count, char** arguments) {
    for (const Question& question : questions()) {
        if (count < 2 || question.name.find(arguments[1]) != std::string_view::npos) {
            ask(question);
        }
    }
    return 0;
}
