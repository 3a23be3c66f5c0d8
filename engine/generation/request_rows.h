// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a request asks of each of its tokens, whoever generates it.

#include <optional>
#include <vector>

#include "engine/generation/answer_text.h"
#include "engine/generation/generator.h"

namespace vitrine::engine {

/// How the token behind `history` is chosen. `pending`: tokens that the device has sampled and the host has not read. The
/// result views `history` and the request.
kernels::SampleParameters sampleParameters(const GenerateRequest& request, const std::vector<std::int32_t>& history,
                                           std::int32_t number, std::int64_t pending);

/// What one more token did to a request.
struct AnswerStep {
    AnswerPiece piece;
    FinishReason finish = FinishReason::None;
};
/// Takes the last of result.ids: its text, and whether the request ends with it (result.channels is then filled in).
AnswerStep takeToken(std::optional<AnswerText>& answer, const GenerateRequest& request, GenerateResult& result);

} // namespace vitrine::engine
