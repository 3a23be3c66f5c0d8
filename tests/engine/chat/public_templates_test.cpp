// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Prompts of templates as models have them: the ids are those of transformers' apply_chat_template.
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "engine/chat/chat_format.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

std::string fileText(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
}

TEST(PublicTemplates, GiveTheIdsOfTransformers) {
    const std::string folder = vitrine::test::fixture("chat/public");
    const auto expected = nlohmann::json::parse(fileText(folder + "/expected.json"));
    ChatFiles files = readChatFiles(folder + "/model");
    const auto tokenizer = Tokenizer::load(folder + "/model/tokenizer.json");
    std::size_t rendered = 0;
    for (const auto& [name, chats] : expected.items()) {
        files.templates["default"] = fileText(folder + "/templates/" + name + ".jinja");
        files.places["default"] = name;
        const auto format = makeChatFormat({}, files, "llama", tokenizer);
        for (const auto& [chat, wanted] : chats.items()) {
            const std::vector<ChatMessage> messages = readChatFile(folder + "/chats/" + chat + ".json");
            if (wanted.contains("error")) {
                EXPECT_THROW(format->render(messages, {}), base::BadInput) << name << " " << chat;
                continue;
            }
            const RenderedChat got = format->render(messages, {});
            EXPECT_EQ(got.text, wanted["text"].get<std::string>()) << name << " " << chat;
            EXPECT_EQ(got.ids, wanted["ids"].get<std::vector<std::int32_t>>()) << name << " " << chat;
            ++rendered;
        }
    }
    EXPECT_GT(rendered, 50U);
}

} // namespace
} // namespace vitrine::engine
