// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session/saved_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_values.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;
constexpr std::string_view kPrefix = "tokens.";

bool firstRequest(const std::string& kind) {
    return kind.starts_with(kPrefix) && kind.find('.', kPrefix.size()) == std::string::npos;
}

} // namespace

StreamedToken tokenOf(const Json& object) {
    StreamedToken token;
    token.request = static_cast<int>(base::numberAt(object, "request").value_or(0));
    token.index = static_cast<int>(base::numberAt(object, "index").value_or(0));
    token.id = static_cast<int>(base::numberAt(object, "id").value_or(0));
    token.text = textOf(base::textAt(object, "text"));
    token.channel = textOf(base::textAt(object, "channel"));
    token.logprob = base::numberAt(object, "logprob").value_or(0);
    token.seconds = base::numberAt(object, "time").value_or(0) * 1e-9;
    const auto top = object.find("top");
    if (top == object.end() || !top->is_array()) {
        return token;
    }
    for (const Json& other : *top) {
        const auto id = other.is_object() ? base::numberAt(other, "id") : std::nullopt;
        const auto logprob = other.is_object() ? base::numberAt(other, "logprob") : std::nullopt;
        if (id && logprob) {
            token.likely.push_back({static_cast<int>(*id), textOf(base::textAt(other, "text")), *logprob});
        }
    }
    return token;
}

std::vector<StreamedToken> savedTokens(const std::vector<sessions::RunText>& texts) {
    std::vector<const sessions::RunText*> parts;
    for (const sessions::RunText& text : texts) {
        if (firstRequest(text.kind)) {
            parts.push_back(&text);
        }
    }
    std::sort(parts.begin(), parts.end(), [](const auto* a, const auto* b) { return a->kind < b->kind; });
    std::vector<StreamedToken> tokens;
    for (const sessions::RunText* part : parts) {
        const std::string_view body = part->body;
        for (std::size_t begin = 0; begin < body.size();) {
            const std::size_t end = std::min(body.find('\n', begin), body.size());
            const Json line = Json::parse(body.substr(begin, end - begin), nullptr, false);
            begin = end + 1;
            if (!line.is_object()) {
                continue;
            }
            StreamedToken token = tokenOf(line);
            token.index = static_cast<int>(tokens.size());
            tokens.push_back(std::move(token));
        }
    }
    return tokens;
}

} // namespace vitrine::ui
