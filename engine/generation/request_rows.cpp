// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/request_rows.h"

#include <algorithm>

namespace vitrine::engine {

kernels::SampleParameters sampleParameters(const GenerateRequest& request, const std::vector<std::int32_t>& history,
                                           std::int32_t number, std::int64_t pending) {
    const Sampling& sampling = request.sampling;
    kernels::SampleParameters p;
    p.temperature = sampling.temperature;
    p.topK = sampling.topK;
    p.topP = sampling.topP;
    p.minP = sampling.minP;
    p.repetitionPenalty = sampling.repetitionPenalty;
    p.seed = sampling.seed;
    p.request = request.samplingNumber.value_or(static_cast<std::uint32_t>(number));
    p.position = static_cast<std::int64_t>(history.size()) + pending;
    p.history = history.data();
    p.historyLength = static_cast<std::int64_t>(history.size());
    p.forbidden = request.forbidden.data();
    p.forbiddenCount = static_cast<std::int64_t>(request.forbidden.size());
    return p;
}

AnswerStep takeToken(std::optional<AnswerText>& answer, const GenerateRequest& request, GenerateResult& result) {
    AnswerStep step;
    const std::int32_t id = result.ids.back();
    const auto& stops = request.stopTokens;
    if (answer) {
        step.piece = answer->push(id);
    }
    if (answer && answer->stopped()) {
        step.finish = FinishReason::StopText;
    } else if (std::find(stops.begin(), stops.end(), id) != stops.end()) {
        step.finish = FinishReason::StopToken;
    } else if (static_cast<std::int64_t>(result.ids.size()) >= request.maxNewTokens) {
        step.finish = FinishReason::Length;
    }
    if (answer && step.finish != FinishReason::None) {
        if (!answer->stopped()) {
            const AnswerPiece rest = answer->finish();
            step.piece.text += rest.text;
            step.piece.channel = rest.channel;
        }
        result.channels = answer->channels();
    }
    return step;
}

} // namespace vitrine::engine
