// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/allowed_origins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/serve/server_rig.h"

namespace vitrine::app {
namespace {

using nlohmann::json;

constexpr const char* kPage = "http://localhost:3000";
constexpr const char* kAllowsPage = "Access-Control-Allow-Origin: http://localhost:3000\r\n";

test::ServerRig::Options allowing(std::vector<std::string> origins, const std::string& key = {}) {
    test::ServerRig::Options options;
    options.server.allowedOrigins = std::move(origins);
    options.server.apiKey = key;
    return options;
}

std::string preflight(const std::string& path, const std::string& origin, const std::string& more = {}) {
    return "OPTIONS " + path + " HTTP/1.1\r\nHost: localhost\r\nOrigin: " + origin +
           "\r\nAccess-Control-Request-Method: POST\r\n" + more + "\r\n";
}

TEST(AllowedOrigins, TakesOriginsOnly) {
    const AllowedOrigins some(
        {"http://localhost:3000", "HTTPS://Chat.Example", "http://[::1]:80", "app://obsidian.md"});
    EXPECT_TRUE(some.allows("http://localhost:3000"));
    EXPECT_TRUE(some.allows("https://chat.example"));
    for (const char* other : {"", "null", "http://localhost", "http://localhost:30000", "https://localhost:3000"}) {
        EXPECT_FALSE(some.allows(other)) << other;
    }
    EXPECT_TRUE(AllowedOrigins({"*"}).allows("null"));
    EXPECT_FALSE(AllowedOrigins().allows("http://localhost:3000"));
    EXPECT_TRUE(AllowedOrigins().headersFor("http://localhost:3000").empty());
    for (const char* wrong : {"", "localhost:3000", "http://", "://x", "http://x/", "http://x/path", "http://*.x",
                              "http://a b", "http://x\r\nSet-Cookie: y"}) {
        EXPECT_THROW(AllowedOrigins({wrong}), base::BadInput) << wrong;
    }
}

TEST(AllowedOrigins, APreflightSaysWhatMayBeSent) {
    test::ServerRig rig(allowing({kPage}));
    for (const char* path : {"/v1/chat/completions", "/v1/completions"}) {
        const test::HttpReply reply = test::request(
            rig.port(),
            preflight(path, kPage, "Access-Control-Request-Headers: content-type, x-stainless-os, x-y\r\n"));
        EXPECT_EQ(reply.status, 204);
        EXPECT_THAT(reply.headers, testing::HasSubstr(kAllowsPage));
        EXPECT_THAT(reply.headers, testing::HasSubstr("Access-Control-Allow-Methods: POST\r\n"));
        EXPECT_THAT(
            reply.headers,
            testing::HasSubstr("Access-Control-Allow-Headers: authorization, content-type, x-stainless-os\r\n"));
        EXPECT_THAT(reply.headers, testing::HasSubstr("Vary: Origin\r\n"));
        EXPECT_THAT(reply.headers, testing::Not(testing::HasSubstr("Content-Length")));
        EXPECT_EQ(reply.body, "");
    }
    const test::HttpReply other = test::request(rig.port(), preflight("/v1/completions", "http://evil.example"));
    EXPECT_EQ(other.status, 405);
    EXPECT_THAT(other.headers, testing::Not(testing::HasSubstr("Access-Control-Allow-Origin")));
    EXPECT_EQ(test::request(rig.port(), preflight("/v1/nothing", kPage)).status, 404);
}

TEST(AllowedOrigins, EveryAnswerNamesTheOrigin) {
    test::ServerRig rig(allowing({"http://other.example", kPage}));
    const std::string from = std::string("Origin: ") + kPage + "\r\n";
    for (const bool stream : {false, true}) {
        json body = rig.body({1, 2, 3}, 2);
        body["stream"] = stream;
        EXPECT_THAT(test::post(rig.port(), "/v1/completions", body, from).headers, testing::HasSubstr(kAllowsPage));
        const test::HttpReply other =
            test::post(rig.port(), "/v1/completions", body, "Origin: http://evil.example\r\n");
        EXPECT_EQ(other.status, 200);
        EXPECT_THAT(other.headers, testing::HasSubstr("Vary: Origin\r\n"));
        EXPECT_THAT(other.headers, testing::Not(testing::HasSubstr("Access-Control-Allow-Origin")));
    }
    const test::HttpReply wrong = test::post(rig.port(), "/v1/completions", {{"model", "x"}}, from);
    EXPECT_EQ(wrong.status, 400);
    EXPECT_THAT(wrong.headers, testing::HasSubstr(kAllowsPage)) << "or else the page could not read why";
    EXPECT_THAT(test::request(rig.port(), test::getText("/v1/models", from)).headers, testing::HasSubstr(kAllowsPage));
}

TEST(AllowedOrigins, APreflightNeedsNoKeyAndAllMeansAll) {
    app::RequestServerOptions options = allowing({"*"}, "k").server;
    options.model = "synthetic:tiny-llama";
    const std::unique_ptr<app::RequestServer> server = app::RequestServer::make(options);
    const int port = std::stoi(server->url().substr(server->url().rfind(':') + 1));
    const test::HttpReply reply = test::request(port, preflight("/v1/completions", "null"));
    EXPECT_EQ(reply.status, 204);
    EXPECT_THAT(reply.headers, testing::HasSubstr("Access-Control-Allow-Origin: *\r\n"));
    const test::HttpReply keyless = test::post(port, "/v1/completions", json::object(), "Origin: null\r\n");
    EXPECT_EQ(keyless.status, 401);
    EXPECT_THAT(keyless.headers, testing::HasSubstr("Access-Control-Allow-Origin: *\r\n"));
    server->close();
}

TEST(AllowedOrigins, WithoutTheOptionNothingChanges) {
    test::ServerRig rig;
    EXPECT_EQ(test::request(rig.port(), preflight("/v1/completions", kPage)).status, 405);
    const test::HttpReply reply =
        test::post(rig.port(), "/v1/completions", rig.body({1, 2}, 1), std::string("Origin: ") + kPage + "\r\n");
    EXPECT_EQ(reply.status, 200);
    EXPECT_THAT(reply.headers, testing::Not(testing::HasSubstr("Vary")));
}

} // namespace
} // namespace vitrine::app
