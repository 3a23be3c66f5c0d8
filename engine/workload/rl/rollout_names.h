// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <string_view>

namespace vitrine::engine {

/// Stands behind the names of tensors that are copies of weights for rollouts alone, so that a session can tell them
/// from what training computes with.
inline constexpr std::string_view kRolloutCopy = " (rollout)";

} // namespace vitrine::engine
