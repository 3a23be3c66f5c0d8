// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a policy is asked and what its answer is judged by, and where such problems come from.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/chat/chat_message.h"

namespace vitrine::engine {

struct Problem {
    std::string name;                  ///< for messages and sessions: "sums 17", "FILE: line 3"
    std::vector<ChatMessage> messages; ///< the prompt as a conversation; empty: it is `text` or `tokens`
    std::string text;                  ///< a prompt that the model reads as it is, without a chat format
    std::vector<std::int32_t> tokens;  ///< the same as ids
    /// An object with what a judge needs: of a file the members of its line. Never null.
    std::shared_ptr<const nlohmann::json> facts;
};

/// Problems by number. Pure functions of the number, so that a run that goes on needs nothing but numbers. No problem
/// is in both sets. Any thread.
class ProblemSource {
public:
    ProblemSource() = default;
    virtual ~ProblemSource() = default;
    ProblemSource(const ProblemSource&) = delete; // may own a file's rows
    ProblemSource& operator=(const ProblemSource&) = delete;

    /// The problem that training asks as its `number`-th, from 0 without an end.
    virtual Problem training(std::int64_t number) const = 0;
    /// How many problems an evaluation may ask; the caller may take the first of them only.
    virtual std::int64_t evaluations() const = 0;
    /// REQUIRES a number below evaluations().
    virtual Problem evaluation(std::int64_t number) const = 0;
    /// The reward of an answer, from 0 to 1. REQUIRES judges().
    virtual double reward(const Problem& problem, const std::string& answer) const = 0;
    /// Whether reward() can judge: not for a file without a checker.
    virtual bool judges() const = 0;
    /// A digest of all that the problems depend on, for the terms of a run that goes on.
    virtual std::string digest() const = 0;
};

} // namespace vitrine::engine
