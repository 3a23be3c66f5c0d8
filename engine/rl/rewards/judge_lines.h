// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What is said to a judge and what it may say: a line of JSON each. Pure functions; docs/reinforcement-learning.md has
// the protocol for users.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/rl/rewards/rewarder.h"

namespace vitrine::engine {

/// A judge that says more in a line talks nonsense.
inline constexpr std::size_t kLongestReply = std::size_t{1} << 20;

/// The line that asks for a judgement, without its end. What is no UTF-8 is replaced.
std::string judgeRequest(const Attempt& attempt);

/// Reads a line, given without its end, as the judgement of the attempt `id`. Its error quotes what is no answer.
Judgement readJudgeReply(std::string_view line, std::int64_t id);

} // namespace vitrine::engine
