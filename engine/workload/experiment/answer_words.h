// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Whether two runs gave the same answers, token by token, in one sentence. Pure function; any thread.

#include <string>

#include "engine/workload/experiment/run_comparison.h"

namespace vitrine::engine {

/// "The answers are the same for 11 tokens and differ from token 12 on." Empty where a run has no token ids among its
/// results, or was planned: then its tokens are nobody's answer.
std::string answerSentence(const ComparedRun& a, const ComparedRun& b);

} // namespace vitrine::engine
