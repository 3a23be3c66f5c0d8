// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Advantages of answers to the same prompt, relative to each other (GRPO, Shao and others 2024, equation 3):
//   (reward - mean of the group) / (standard deviation of the group + 1e-6)
// with n - 1 in the deviation, as TRL has it.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace vitrine::engine {

/// `groups`: of each reward its group, any numbers. REQUIRES as many of them, and no group of one.
std::vector<float> groupAdvantages(std::span<const float> rewards, std::span<const std::int64_t> groups);
/// The first row that is alone in its group.
std::optional<std::size_t> rowAloneInGroup(std::span<const std::int64_t> groups);

} // namespace vitrine::engine
