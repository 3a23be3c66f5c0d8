// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/request_rows.h"

#include <algorithm>

namespace vitrine::engine {

Sampling fromGenerationConfig(const GenerationConfig& config) {
    Sampling out;
    out.temperature = static_cast<float>(config.temperature);
    out.topK = config.topK;
    out.topP = static_cast<float>(config.topP);
    out.minP = static_cast<float>(config.minP);
    out.repetitionPenalty = static_cast<float>(config.repetitionPenalty);
    return out;
}

FinishReason finishReasonOf(const base::Error& error) {
    switch (error.kind()) {
    case base::ErrorKind::Cancelled:
        return FinishReason::Cancelled;
    case base::ErrorKind::OutOfMemory:
        return FinishReason::OutOfMemory;
    default:
        return FinishReason::Failed;
    }
}

std::string_view finishReasonName(FinishReason reason) {
    switch (reason) {
    case FinishReason::Length:
        return "length";
    case FinishReason::StopToken:
        return "stop_token";
    case FinishReason::StopText:
        return "stop_text";
    case FinishReason::Cancelled:
        return "cancelled";
    case FinishReason::OutOfMemory:
        return "out_of_memory";
    case FinishReason::Failed:
        return "failed";
    case FinishReason::None:
        break;
    }
    return "unfinished";
}

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

GeneratedToken addToken(kernels::Tracer& tracer, std::int32_t number, std::vector<std::int32_t>& history,
                        GenerateResult& result, std::int32_t id, float logprob) {
    GeneratedToken token;
    token.request = number;
    token.index = static_cast<std::int32_t>(result.ids.size());
    token.id = id;
    token.logprob = logprob;
    tracer.token(number, static_cast<std::int32_t>(history.size()), id, logprob);
    history.push_back(id);
    result.ids.push_back(id);
    result.logprobs.push_back(logprob);
    return token;
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
