// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/api_reply.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace vitrine::app {
namespace {

using nlohmann::json;

bool isChat(const ReplyHead& head) {
    return head.endpoint == Endpoint::Chat;
}

std::string event(const json& value) {
    return "data: " + value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n\n";
}

json usageJson(const Usage& usage) {
    return {{"prompt_tokens", usage.prompt},
            {"completion_tokens", usage.completion},
            {"total_tokens", usage.prompt + usage.completion},
            {"prompt_tokens_details", {{"cached_tokens", usage.cached}}}};
}

json bytesOf(const std::string& text) {
    json bytes = json::array();
    for (const char c : text) {
        bytes.push_back(static_cast<unsigned char>(c));
    }
    return bytes;
}

json tokenJson(const std::string& text, float logprob) {
    return {{"token", text}, {"logprob", logprob}, {"bytes", bytesOf(text)}};
}

json logprobsJson(const ReplyHead& head, const std::vector<TokenLogprob>& tokens) {
    if (!head.logprobs) {
        return {};
    }
    if (isChat(head)) {
        json content = json::array();
        for (const TokenLogprob& token : tokens) {
            json best = json::array();
            for (const auto& [text, logprob] : token.best) {
                best.push_back(tokenJson(text, logprob));
            }
            json one = tokenJson(token.text, token.logprob);
            one["top_logprobs"] = std::move(best);
            content.push_back(std::move(one));
        }
        return {{"content", std::move(content)}, {"refusal", json()}};
    }
    json out = {{"tokens", json::array()},
                {"token_logprobs", json::array()},
                {"top_logprobs", head.topLogprobs > 0 ? json::array() : json()},
                {"text_offset", json::array()}};
    for (const TokenLogprob& token : tokens) {
        out["tokens"].push_back(token.text);
        out["token_logprobs"].push_back(token.known ? json(token.logprob) : json());
        out["text_offset"].push_back(token.offset);
        if (head.topLogprobs > 0 && !token.known) {
            out["top_logprobs"].push_back(json());
        } else if (head.topLogprobs > 0) {
            json best = json::object();
            for (const auto& [text, logprob] : token.best) {
                best.emplace(text, logprob); // of tokens with the same text the likelier
            }
            best.emplace(token.text, token.logprob);
            out["top_logprobs"].push_back(std::move(best));
        }
    }
    return out;
}

json envelope(const ReplyHead& head, bool chunk) {
    const char* object = isChat(head) ? (chunk ? "chat.completion.chunk" : "chat.completion") : "text_completion";
    return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

std::string chunk(const ReplyHead& head, json choice) {
    json out = envelope(head, true);
    out["choices"] = json::array({std::move(choice)});
    if (head.includeUsage) {
        out["usage"] = json();
    }
    return event(out);
}

/// `content`: delta of a chat, text of a completion.
json chunkChoice(const ReplyHead& head, std::size_t choice, json content, json finish) {
    return {{"index", choice},
            {isChat(head) ? "delta" : "text", std::move(content)},
            {"logprobs", json()},
            {"finish_reason", std::move(finish)}};
}

} // namespace

std::string_view apiFinishReason(engine::FinishReason finish) {
    return finish == engine::FinishReason::Length || finish == engine::FinishReason::Context ? "length" : "stop";
}

json replyObject(const ReplyHead& head, const std::vector<ReplyChoice>& choices, const Usage& usage) {
    json out = envelope(head, false);
    out["choices"] = json::array();
    for (std::size_t i = 0; i < choices.size(); ++i) {
        const ReplyChoice& from = choices[i];
        json choice = {{"index", i},
                       {"logprobs", logprobsJson(head, from.logprobs)},
                       {"finish_reason", apiFinishReason(from.finish)}};
        if (isChat(head)) {
            choice["message"] = {{"role", "assistant"}, {"content", from.text}, {"refusal", json()}};
            if (!from.reasoning.empty()) {
                choice["message"]["reasoning_content"] = from.reasoning;
            }
        } else {
            choice["text"] = from.text;
        }
        if (head.tokenIds) {
            choice["token_ids"] = from.ids;
        }
        out["choices"].push_back(std::move(choice));
    }
    out["usage"] = usageJson(usage);
    return out;
}

std::string firstChunk(const ReplyHead& head, std::size_t choice) {
    if (!isChat(head)) {
        return {};
    }
    return chunk(head, chunkChoice(head, choice, {{"role", "assistant"}, {"content", ""}}, json()));
}

std::string echoChunk(const ReplyHead& head, std::size_t choice, const std::string& text,
                      const std::vector<std::int32_t>& ids) {
    json out = chunkChoice(head, choice, text, json());
    if (head.tokenIds) {
        out["token_ids"] = ids;
    }
    return chunk(head, std::move(out));
}

std::string tokenChunk(const ReplyHead& head, std::size_t choice, const ReplyPiece& piece) {
    if (piece.text.empty() && !head.logprobs && !head.tokenIds) {
        return {};
    }
    json content = piece.text;
    if (isChat(head)) {
        content = {{piece.channel == "analysis" ? "reasoning_content" : "content", piece.text}};
    }
    json out = chunkChoice(head, choice, std::move(content), json());
    if (head.logprobs) {
        out["logprobs"] = logprobsJson(head, {piece.logprob});
    }
    if (head.tokenIds) {
        out["token_ids"] = json::array({piece.id});
    }
    return chunk(head, std::move(out));
}

std::string lastChunk(const ReplyHead& head, std::size_t choice, engine::FinishReason finish) {
    return chunk(head, chunkChoice(head, choice, isChat(head) ? json::object() : json(""), apiFinishReason(finish)));
}

std::string streamEnd(const ReplyHead& head, const Usage& usage) {
    std::string out;
    if (head.includeUsage) {
        json last = envelope(head, true);
        last["choices"] = json::array();
        last["usage"] = usageJson(usage);
        out = event(last);
    }
    return out + "data: [DONE]\n\n";
}

std::string errorChunk(const ApiError& error) {
    return event(errorBody(error));
}

json modelObject(const std::string& name, std::int64_t created, std::int64_t longest) {
    return {
        {"id", name}, {"object", "model"}, {"created", created}, {"owned_by", "vitrine"}, {"max_model_len", longest}};
}

std::string bodyText(const json& body) {
    return body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace vitrine::app
