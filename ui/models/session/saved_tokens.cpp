// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session/saved_tokens.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "ui/models/common/json_values.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;
constexpr std::string_view kPrefix = "tokens.";

bool firstRequest(const std::string& kind) {
    return kind.starts_with(kPrefix) && kind.find('.', kPrefix.size()) == std::string::npos;
}

} // namespace

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
            StreamedToken token;
            token.index = static_cast<int>(tokens.size());
            token.id = static_cast<int>(numberAt(line, "id").value_or(0));
            token.text = textAt(line, "text");
            token.channel = textAt(line, "channel");
            token.logprob = numberAt(line, "logprob").value_or(0);
            token.seconds = numberAt(line, "time").value_or(0) * 1e-9;
            if (const auto top = line.find("top"); top != line.end() && top->is_array()) {
                token.topJson = QString::fromStdString(top->dump(-1, ' ', false, Json::error_handler_t::replace));
            }
            tokens.push_back(std::move(token));
        }
    }
    return tokens;
}

} // namespace vitrine::ui
