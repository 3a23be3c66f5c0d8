// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One row of a file of problems. Row means the same as in training data: a JSON object.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/rl/problems/checker.h"
#include "engine/rl/problems/problem.h"

namespace vitrine::engine {

/// What a row is read with.
struct ProblemRowOptions {
    const Checker* checker = nullptr; ///< null: rows need no answer
    bool raw = false;                 ///< prompts that are texts are read as they are
    std::int64_t vocab = 0;           ///< ids of tokens are below it; 0: no model is known
};

/// Reads and checks a row. `path` and `line` are for errors of JSON, `place` ("FILE: line 3") for the others and the
/// problem's name. Throws BadInput "PLACE: FIELD: what", Unsupported for messages that have no text.
Problem problemOfRow(std::string_view row, const std::string& path, std::int64_t line, const std::string& place,
                     const ProblemRowOptions& options);

/// The right answer of a row that was checked: "answer", "solution", "target" or "reward_model.ground_truth". Null:
/// there is none.
const nlohmann::json* expectedOf(const nlohmann::json& facts);

/// Problems with the same text ask the same.
std::string promptKey(const Problem& problem);

} // namespace vitrine::engine
