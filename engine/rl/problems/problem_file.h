// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Problems of a JSONL file. A row has "prompt" (a text, or messages as OpenAI's chat API has them), "messages",
// "question" or "problem" (texts) or "tokens" (ids), and what its judge needs.

#include <cstdint>
#include <memory>
#include <string>

#include "engine/rl/problems/checker.h"
#include "engine/rl/problems/problem.h"

namespace vitrine::engine {

struct ProblemFileOptions {
    std::string path;
    std::string evaluationPath;       ///< problems of the evaluation; empty: rows that are held back
    std::int64_t heldBack = 0;        ///< rows of `path` that training does not ask, where evaluationPath is empty
    const Checker* checker = nullptr; ///< null: the source does not judge
    std::uint64_t seed = 0;           ///< of the order, another one in each epoch, and of which rows are held back
    bool raw = false;                 ///< texts are read as they are, without a chat format
    std::int64_t vocab = 0;           ///< ids of tokens are below it; 0: no model is known
};

/// Reads and checks the files. Throws BadInput "FILE: line N: FIELD: what".
std::unique_ptr<ProblemSource> problemFile(const ProblemFileOptions& options);

} // namespace vitrine::engine
