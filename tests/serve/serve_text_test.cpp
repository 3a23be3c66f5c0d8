// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Texts and connections: what clients read of an answer, however it comes to them.

#include <array>
#include <cstdio>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/resource_path.h"
#include "tests/repetitions.h"
#include "tests/serve/server_rig.h"

namespace vitrine {
namespace {

using nlohmann::json;
using test::HttpReply;
using test::ServerRig;

/// One server with the demo model for all tests here: they do not see each other.
class ServeText : public testing::Test {
protected:
    static void SetUpTestSuite() {
        ServerRig::Options options;
        options.model = base::resourcePath("models/vitrine-demo");
        sharedRig = std::make_unique<ServerRig>(options);
    }
    static void TearDownTestSuite() { sharedRig.reset(); }

    static json textBody(int maxTokens, const json& more = json::object()) {
        json body = sharedRig->body("The window of a sliding layer", maxTokens);
        body.update(more);
        return body;
    }
    static std::string textOf(const json& body) {
        const HttpReply reply = sharedRig->complete(body);
        EXPECT_EQ(reply.status, 200) << reply.body;
        return json::parse(reply.body).at("choices").at(0).at("text");
    }
    struct Streamed {
        std::vector<std::string> pieces;
        std::string finish;
        std::string text() const {
            std::string out;
            for (const std::string& piece : pieces) {
                out += piece;
            }
            return out;
        }
    };
    static Streamed stream(json body) {
        body["stream"] = true;
        const HttpReply reply = sharedRig->complete(body);
        EXPECT_THAT(reply.headers, testing::HasSubstr("text/event-stream"));
        Streamed out;
        bool done = false;
        for (const json& event : test::events(reply.body, &done)) {
            const json& choice = event.at("choices").at(0);
            out.pieces.push_back(choice.at("text"));
            out.finish = choice.at("finish_reason").is_string() ? choice.at("finish_reason").get<std::string>() : "";
        }
        EXPECT_TRUE(done);
        return out;
    }

    static inline std::unique_ptr<ServerRig> sharedRig;
};

TEST_F(ServeText, StreamsAreTheWholeTextInWholeCharacters) {
    for (int seed = 0; seed < vitrine::test::repetitions(20); ++seed) {
        const json body = textBody(40, {{"temperature", 2}, {"seed", seed}});
        EXPECT_EQ(stream(body).text(), textOf(body)) << "seed " << seed;
    }
}

TEST_F(ServeText, OneSeedIsOneAnswer) {
    const auto answer = [](int seed) { return textOf(textBody(20, {{"temperature", 1}, {"seed", seed}})); };
    const std::string first = answer(7);
    EXPECT_EQ(answer(7), first);
    EXPECT_NE(answer(8), first);
    EXPECT_NE(textOf(textBody(20, {{"temperature", 1}})), textOf(textBody(20, {{"temperature", 1}})))
        << "without a seed every request is another one";
}

TEST_F(ServeText, AStopTextAcrossTokensEndsTheAnswerBeforeIt) {
    const Streamed whole = stream(textBody(30));
    ASSERT_GE(whole.pieces.size(), 10U);
    EXPECT_EQ(whole.finish, "length");
    // From the end of one piece into the next one.
    const std::string stop = whole.pieces[5].substr(whole.pieces[5].size() - 1) + whole.pieces[6].substr(0, 2);
    const std::string expected = whole.text().substr(0, whole.text().find(stop));
    for (const json& form : {json(stop), json::array({"never said", stop})}) {
        const Streamed cut = stream(textBody(30, {{"stop", form}}));
        EXPECT_EQ(cut.text(), expected);
        EXPECT_EQ(cut.finish, "stop");
        EXPECT_EQ(textOf(textBody(30, {{"stop", form}})), expected);
    }
    EXPECT_EQ(textOf(textBody(30, {{"stop", "never said"}})), whole.text()) << "what was held back comes";
}

TEST_F(ServeText, SeveralPromptsAndAnswersKeepTheirPlaces) {
    json body = textBody(6, {{"prompt", {"One", "Two"}}, {"n", 2}, {"temperature", 1}, {"seed", 3}});
    const json answer = json::parse(sharedRig->complete(body).body);
    ASSERT_EQ(answer.at("choices").size(), 4U);
    std::vector<std::string> texts(4);
    body["stream"] = true;
    for (const json& event : test::events(sharedRig->complete(body).body, nullptr)) {
        const json& choice = event.at("choices").at(0);
        texts.at(choice.at("index")) += choice.at("text").get<std::string>();
    }
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(answer.at("choices").at(i).at("index"), i);
        EXPECT_EQ(answer.at("choices").at(i).at("text").get<std::string>(), texts[i]);
    }
    EXPECT_NE(texts[0], texts[1]) << "two answers to one prompt are two";
    body = textBody(6, {{"prompt", "Two"}, {"n", 1}, {"temperature", 1}, {"seed", 3}});
    EXPECT_EQ(textOf(body), texts[2]) << "and do not depend on what else was asked for";
    EXPECT_EQ(answer.at("usage").at("completion_tokens"), 24);
}

TEST_F(ServeText, AChatHasARoleAndChannels) {
    json body = {{"model", sharedRig->name()},
                 {"messages", {{{"role", "user"}, {"content", "Hello"}}}},
                 {"max_tokens", 12},
                 {"temperature", 0},
                 {"logprobs", true}};
    const json whole = json::parse(sharedRig->chat(body).body);
    EXPECT_EQ(whole.at("object"), "chat.completion");
    const json& message = whole.at("choices").at(0).at("message");
    EXPECT_EQ(message.at("role"), "assistant");
    EXPECT_EQ(whole.at("choices").at(0).at("logprobs").at("content").size(), 12U);
    body["stream"] = true;
    std::string text;
    std::string role;
    std::size_t logprobs = 0;
    for (const json& event : test::events(sharedRig->chat(body).body, nullptr)) {
        EXPECT_EQ(event.at("object"), "chat.completion.chunk");
        const json& choice = event.at("choices").at(0);
        role += choice.at("delta").value("role", "");
        text += choice.at("delta").value("content", "");
        logprobs += choice.at("logprobs").is_object() ? choice.at("logprobs").at("content").size() : 0;
    }
    EXPECT_EQ(role, "assistant");
    EXPECT_EQ(text, message.at("content").get<std::string>());
    EXPECT_EQ(logprobs, 12U);
}

TEST_F(ServeText, ConnectionsServeOneRequestAfterTheOther) {
    test::HttpConnection connection(sharedRig->port());
    const std::string text = test::postText("/v1/completions", textBody(3).dump());
    const std::string expected = textOf(textBody(3));
    const auto expectAnswer = [&] {
        const HttpReply reply = connection.reply();
        ASSERT_EQ(reply.status, 200);
        EXPECT_EQ(json::parse(reply.body).at("choices").at(0).at("text").get<std::string>(), expected);
    };
    connection.send(text);
    expectAnswer();
    connection.send(test::postText("/v1/completions", "{"));
    EXPECT_EQ(connection.reply().status, 400) << "a mistake does not cost the connection";
    connection.send(text + text);
    expectAnswer();
    expectAnswer();
    for (const char letter : text) {
        connection.send(std::string_view(&letter, 1));
    }
    expectAnswer();
    const std::string body = textBody(3).dump();
    connection.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n5\r\n" +
                    body.substr(0, 5) + "\r\n");
    std::array<char, 16> size{};
    std::snprintf(size.data(), size.size(), "%zx\r\n", body.size() - 5);
    connection.send(size.data() + body.substr(5) + "\r\n0\r\n\r\n");
    expectAnswer();
}

TEST_F(ServeText, ATooLargeBodyIsRefusedEvenWhenItComesInPieces) {
    test::HttpConnection connection(sharedRig->port());
    connection.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n");
    const std::string piece = "100000\r\n" + std::string(0x100000, ' ') + "\r\n";
    for (int i = 0; i < 9; ++i) {
        connection.send(piece);
    }
    connection.send("0\r\n\r\n");
    EXPECT_EQ(connection.reply().status, 413);
}

} // namespace
} // namespace vitrine
