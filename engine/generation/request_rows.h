// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a request asks of each of its tokens, whoever generates it.

#include <optional>
#include <vector>

#include "engine/generation/answer_text.h"
#include "engine/generation/generator.h"
#include "kernels/core/tracer.h"

namespace vitrine::engine {

/// How the token behind `history` is chosen. `pending`: tokens that the device has sampled and the host has not read. The
/// result views `history` and the request.
kernels::SampleParameters sampleParameters(const GenerateRequest& request, const std::vector<std::int32_t>& history,
                                           std::int32_t number, std::int64_t pending);

/// A token was sampled for request `number`: the trace is told, `history` and the result have it from here on. What is returned has
/// no text and no time yet.
GeneratedToken addToken(kernels::Tracer& tracer, std::int32_t number, std::vector<std::int32_t>& history,
                        GenerateResult& result, std::int32_t id, float logprob);

/// What one more token did to a request.
struct AnswerStep {
    AnswerPiece piece;
    FinishReason finish = FinishReason::None;
};
/// Takes the last of result.ids: its text, and whether the request ends with it (result.channels is then filled in).
AnswerStep takeToken(std::optional<AnswerText>& answer, const GenerateRequest& request, GenerateResult& result);

} // namespace vitrine::engine
