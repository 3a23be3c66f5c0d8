// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/http_rules.h"

#include <gtest/gtest.h>

namespace vitrine::app {
namespace {

HttpHeaders postHeaders() {
    HttpHeaders headers;
    headers.method = "POST";
    headers.url = kChatPath;
    headers.host = "localhost:8000";
    headers.contentType = "application/json; charset=utf-8";
    headers.contentLength = "10";
    return headers;
}

int statusOf(const HttpHeaders& headers, const std::string& key = {}, bool loopback = true) {
    try {
        checkHeaders(headers, key, loopback);
        return 200;
    } catch (const ApiError& error) {
        EXPECT_FALSE(error.message.empty());
        return error.status;
    }
}

TEST(HttpRules, PathsAndMethods) {
    EXPECT_EQ(statusOf(postHeaders()), 200);
    HttpHeaders headers = postHeaders();
    headers.method = "GET";
    EXPECT_EQ(statusOf(headers), 405);
    for (const char* path : {"/v1/models", "/v1/models/x", "/health", "/metrics"}) {
        headers.url = path;
        EXPECT_EQ(statusOf(headers), 200) << path;
    }
    headers.method = "PUT";
    EXPECT_EQ(statusOf(headers), 405);
    for (const char* path : {"", "/", "/v1/model", "/v1/models/", "/v1/modelsx", "/v1/chat/completions/"}) {
        headers.url = path;
        EXPECT_EQ(statusOf(headers), 404) << path;
    }
}

TEST(HttpRules, KeysAreComparedWhole) {
    HttpHeaders headers = postHeaders();
    EXPECT_EQ(statusOf(headers, "key"), 401);
    for (const char* wrong : {"Bearer", "Bearer ", "Bearer ke", "Bearer key2", "Bearer KEY", "Basic key", "key"}) {
        headers.authorization = wrong;
        EXPECT_EQ(statusOf(headers, "key"), 401) << wrong;
    }
    for (const char* right : {"Bearer key", "bearer key", "Bearer   key"}) {
        headers.authorization = right;
        EXPECT_EQ(statusOf(headers, "key"), 200) << right;
    }
    EXPECT_TRUE(equalInConstantTime("", ""));
    EXPECT_FALSE(equalInConstantTime("aa", "a"));
    EXPECT_FALSE(equalInConstantTime("", "a"));
    EXPECT_FALSE(equalInConstantTime("a", ""));
}

TEST(HttpRules, OnlyThisMachinesNamesOnLoopback) {
    HttpHeaders headers = postHeaders();
    for (const char* good : {"", "LOCALHOST", "127.0.0.1:9", "[::1]:8000", "api.localhost", "192.168.1.5"}) {
        headers.host = good;
        EXPECT_EQ(statusOf(headers), 200) << good;
    }
    for (const char* bad : {"evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "["}) {
        headers.host = bad;
        EXPECT_EQ(statusOf(headers), std::string_view(bad) == "[" ? 200 : 403) << bad;
        EXPECT_EQ(statusOf(headers, {}, false), 200) << "others may have any name";
    }
}

TEST(HttpRules, BodiesHaveATypeAndALimit) {
    HttpHeaders headers = postHeaders();
    headers.contentType = "application/x-www-form-urlencoded";
    EXPECT_EQ(statusOf(headers), 415);
    headers.contentType = "application/jsonx";
    EXPECT_EQ(statusOf(headers), 415);
    headers.contentType = "Application/JSON ;x";
    EXPECT_EQ(statusOf(headers), 200);
    headers.contentType = "";
    EXPECT_EQ(statusOf(headers), 200) << "tools leave it out";
    headers.origin = "https://evil.example";
    EXPECT_EQ(statusOf(headers), 415) << "pages do so to be sent without being asked";
    headers = postHeaders();
    headers.contentLength = "";
    EXPECT_EQ(statusOf(headers), 411);
    headers.transferEncoding = "chunked";
    EXPECT_EQ(statusOf(headers), 200);
    headers = postHeaders();
    headers.contentLength = "8388608";
    EXPECT_EQ(statusOf(headers), 200);
    for (const char* large : {"8388609", "99999999999999999999999", "x"}) {
        headers.contentLength = large;
        EXPECT_EQ(statusOf(headers), 413) << large;
    }
}

} // namespace
} // namespace vitrine::app
