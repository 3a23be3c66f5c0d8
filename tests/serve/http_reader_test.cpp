// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/http_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vitrine::app {
namespace {

using Progress = HttpReader::Progress;

/// All requests in `text`, which comes in pieces of `step` bytes.
std::vector<HttpRequest> readAll(const std::string& text, std::size_t step) {
    HttpReader reader;
    std::string in;
    std::vector<HttpRequest> out;
    for (std::size_t at = 0; at < text.size(); at += step) {
        in += text.substr(at, step);
        for (Progress progress = reader.read(in); progress != Progress::NeedsMore; progress = reader.read(in)) {
            if (progress == Progress::Whole) {
                out.push_back(reader.request());
                reader.reset();
            }
        }
    }
    return out;
}

int statusOf(const std::string& text) {
    try {
        return readAll(text, text.size()).empty() ? 0 : 200;
    } catch (const ApiError& error) {
        EXPECT_FALSE(error.message.empty());
        return error.status;
    }
}

TEST(HttpReader, TakesRequestsInPiecesOfAnySize) {
    const std::string text =
        "POST /v1/a%20b?x=1 HTTP/1.1\r\nHost: h\r\nX-Some:  thing \r\nContent-Length: 5\r\n\r\nhello"
        "\r\nGET http://h/health HTTP/1.0\r\n\r\n"
        "POST /c HTTP/1.1\r\nhost: h\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n"
        "3;more=x\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";
    for (const std::size_t step : {std::size_t{1}, std::size_t{2}, std::size_t{7}, text.size()}) {
        const std::vector<HttpRequest> all = readAll(text, step);
        ASSERT_EQ(all.size(), 3U) << step;
        EXPECT_EQ(all[0].method, "POST");
        EXPECT_EQ(all[0].path, "/v1/a b");
        EXPECT_EQ(all[0].header("x-some"), "thing");
        EXPECT_EQ(all[0].body, "hello");
        EXPECT_TRUE(all[0].keepsConnection);
        EXPECT_EQ(all[1].path, "/health");
        EXPECT_TRUE(all[1].old);
        EXPECT_FALSE(all[1].keepsConnection);
        EXPECT_EQ(all[2].body, "abc0123456789");
        EXPECT_FALSE(all[2].keepsConnection);
    }
}

TEST(HttpReader, WhatCanBeReadInTwoWaysIsRefused) {
    const auto head = [](const std::string& more) { return "POST /a HTTP/1.1\r\nHost: h\r\n" + more + "\r\n"; };
    EXPECT_EQ(statusOf(head("Content-Length: 1\r\nContent-Length: 1\r\n") + "x"), 200);
    EXPECT_EQ(statusOf(head("Content-Length: 1\r\nContent-Length: 2\r\n") + "xy"), 400);
    EXPECT_EQ(statusOf(head("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n"), 400);
    EXPECT_EQ(statusOf(head("Transfer-Encoding: gzip\r\n")), 501);
    EXPECT_EQ(statusOf(head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")), 501);
    for (const char* length : {"-1", "+1", "1 2", "0x1", "", "1,2"}) {
        EXPECT_EQ(statusOf(head(std::string("Content-Length: ") + length + "\r\n") + "x"), 400) << length;
    }
    EXPECT_EQ(statusOf(head("Content-Length: 99999999999999999999999\r\n")), 413);
    EXPECT_EQ(statusOf(head("A: b\r\n folded\r\n")), 400);
    EXPECT_EQ(statusOf(head("A : b\r\n")), 400);
    EXPECT_EQ(statusOf(head("no colon\r\n")), 400);
    EXPECT_EQ(statusOf(head("A: b\nC: d\r\n")), 400);
    EXPECT_EQ(statusOf(head("Host: other\r\n")), 400);
    EXPECT_EQ(statusOf("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
    EXPECT_EQ(statusOf("GET  / HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
    EXPECT_EQ(statusOf("GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
    EXPECT_EQ(statusOf("GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
    EXPECT_EQ(statusOf("GET health HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
    EXPECT_EQ(statusOf("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
    EXPECT_EQ(statusOf("\x16\x03\x01 a hello of TLS"), 400);
    EXPECT_EQ(statusOf(head("Transfer-Encoding: chunked\r\n") + "x\r\n"), 400);
    EXPECT_EQ(statusOf(head("Transfer-Encoding: chunked\r\n") + "1\r\nab\r\n"), 400);
    EXPECT_EQ(statusOf(head("Transfer-Encoding: chunked\r\n") + "900000\r\n"), 413);
    EXPECT_EQ(statusOf(head("Transfer-Encoding: chunked\r\n") + "ffffffffffffffff\r\n"), 413);
}

TEST(HttpReader, LongHeadsAreRefusedBeforeTheyEnd) {
    EXPECT_EQ(statusOf("GET /" + std::string(HttpReader::kMostLine, 'x')), 414);
    EXPECT_EQ(statusOf("GET / HTTP/1.1\r\nA: " + std::string(HttpReader::kMostHead, 'x')), 431);
    std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (std::size_t i = 0; i < HttpReader::kMostHeaders; ++i) {
        many += "A: b\r\n";
    }
    EXPECT_EQ(statusOf(many + "\r\n"), 431);
    EXPECT_EQ(statusOf("GET / HTTP/1.1\r\nHost: h\r\nA: " + std::string(20'000, 'x') + "\r\n\r\n"), 200);
}

TEST(HttpReader, TheLimitsHoldWhereverTheTextIsCut) {
    // As long as may be: the ending may come in a later piece and does not count.
    const std::string start = "GET /";
    const std::string end = " HTTP/1.1";
    const std::string line = start + std::string(HttpReader::kMostLine - start.size() - end.size(), 'x') + end;
    EXPECT_EQ(readAll(line + "\r\nHost: h\r\n\r\n", line.size() + 1).size(), 1U);
    const std::string head = "GET / HTTP/1.1\r\nHost: h\r\nA: ";
    const std::string full = head + std::string(HttpReader::kMostHead - head.size(), 'x');
    for (const std::size_t more : {1U, 2U, 3U}) {
        EXPECT_EQ(readAll(full + "\r\n\r\n", full.size() + more).size(), 1U) << more;
    }
    EXPECT_EQ(statusOf(full + "x\r\n\r\n"), 431);
}

} // namespace
} // namespace vitrine::app
