// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Problems of a JSONL file, or of one JSON array. A row has "prompt" (a text, or messages as OpenAI's chat API has
// them), "messages", "question" or "problem" (texts) or "tokens" (ids), and what its judge needs; the first of them
// counts. Checkers look for the right answer in "answer", "solution", "target" and "reward_model.ground_truth", in this
// order. So files of GSM8K and DAPO-Math can be given as they are.

#include <cstdint>
#include <memory>
#include <string>

#include "engine/rl/problems/checker.h"
#include "engine/rl/problems/problem.h"

namespace vitrine::engine {

struct ProblemFileOptions {
    std::string path;
    std::string evaluationPath;       ///< problems of the evaluation; empty: rows that are held back
    std::int64_t heldBack = 0;        ///< different problems of `path` that are held back, with all copies of them
    const Checker* checker = nullptr; ///< null: the source does not judge
    std::uint64_t seed = 0;           ///< of the order, another one in each epoch, and of which rows are held back
    bool raw = false;                 ///< texts are read as they are, without a chat format
    std::int64_t vocab = 0;           ///< ids of tokens are below it; 0: no model is known
};

/// Reads and checks the files, whose text stays in memory. Training asks all rows in each epoch, but those whose prompt
/// is in the evaluation. Throws BadInput "FILE: line N: FIELD: what" (of an array: "row N"), Unsupported for messages
/// that are no text.
std::unique_ptr<ProblemSource> problemFile(const ProblemFileOptions& options);

} // namespace vitrine::engine
