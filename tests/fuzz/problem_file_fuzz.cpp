// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Files of problems: JSON Lines, or one array. The text is an answer for every checker and task too, and what a checker
// takes as the right answer. Seeds: rows as in tests/engine/rl/problems/problem_file_test.cpp.

#include "engine/rl/problems/problem_file.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "engine/rl/problems/task.h"
#include "engine/tokenizer/unicode_text.h"

namespace base = vitrine::base;
namespace engine = vitrine::engine;

namespace {

void requireReward(double reward) {
    if (!(reward >= 0 && reward <= 1)) {
        std::abort();
    }
}

void requireOneLine(const base::Error& error) {
    if (error.message().empty() || error.message().find('\n') != std::string::npos) {
        std::abort();
    }
}

void judgeByAll(const std::string& text) {
    const nlohmann::json asText = engine::replaceInvalidUtf8(text);
    for (const engine::Checker& checker : engine::checkers()) {
        const nlohmann::json plain = checker.name == "choice" ? "B" : checker.name == "regex" ? "[0-9]+$" : "34";
        requireReward(checker.judge(plain, text));
        try {
            checker.requireAnswer(asText);
            requireReward(checker.judge(asText, text));
        } catch (const base::BadInput& error) {
            if (!std::string_view(error.message()).starts_with("answer: ")) {
                std::abort();
            }
        }
    }
    for (const engine::Task& task : engine::tasks()) {
        engine::ProblemDraws draws(1, 2, text.size());
        const engine::TaskProblem problem = task.make(task.mostDifficulty, draws);
        requireReward(task.check(*problem.facts, text));
    }
}

void askFile(const std::string& path, const engine::Checker* checker, const std::string& answer) {
    try {
        engine::ProblemFileOptions options;
        options.path = path;
        options.checker = checker;
        options.vocab = 512;
        options.heldBack = answer.size() % 3;
        const std::unique_ptr<engine::ProblemSource> source = engine::problemFile(options);
        for (std::int64_t number = 0; number < 5; ++number) {
            const engine::Problem problem = source->training(number);
            if (problem.messages.empty() && problem.text.empty() && problem.tokens.empty()) {
                std::abort();
            }
            if (source->judges()) {
                requireReward(source->reward(problem, answer));
            }
        }
        for (std::int64_t number = 0; number < source->evaluations(); ++number) {
            source->evaluation(number);
        }
    } catch (const base::BadInput& error) {
        requireOneLine(error);
    } catch (const base::Unsupported& error) {
        requireOneLine(error);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    judgeByAll(text);
    const int file = ::memfd_create("problems", 0);
    if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) {
        std::abort();
    }
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    askFile(path, nullptr, text);
    for (const engine::Checker& checker : engine::checkers()) {
        askFile(path, &checker, text);
    }
    ::close(file);
    return 0;
}
