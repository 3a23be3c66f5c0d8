// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A client of HTTP for tests: one request at a time, or very many streams at once on one thread.

#include <chrono>
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::test {

struct HttpReply {
    int status = 0; ///< 0: the connection ended without an answer
    std::string headers;
    std::string body;      ///< without the marks of chunks
    bool complete = false; ///< the body's end was seen
};

/// POST with a JSON body and `more` header lines ("Name: value\r\n" each).
std::string postText(std::string_view path, std::string_view body, std::string_view more = {});
std::string getText(std::string_view path, std::string_view more = {});

/// A connection to 127.0.0.1; closed at the end. Waits give up after 60 s.
class HttpConnection {
public:
    explicit HttpConnection(int port);
    ~HttpConnection();
    HttpConnection(const HttpConnection&) = delete;
    HttpConnection& operator=(const HttpConnection&) = delete;

    void send(std::string_view text) const;
    /// The next answer.
    HttpReply reply();
    /// Waits until the received bytes of the answer contain `text`; false when the connection ended first.
    bool waitFor(std::string_view text);
    void close();
    /// Keeps the receive buffer as small as the system allows; before anything is received.
    int socket() const { return socket_; }

private:
    bool receive();

    int socket_ = -1;
    std::string in_;
};

/// One request on a connection of its own.
HttpReply request(int port, std::string_view text);
HttpReply post(int port, std::string_view path, const nlohmann::json& body, std::string_view more = {});

/// The values after "data: " in a stream, "[DONE]" left out; `done` (may be null) says whether it stood at the end.
std::vector<nlohmann::json> events(const std::string& stream, bool* done);

/// Sends all requests at once, each on a connection of its own, and waits for all answers.
std::vector<HttpReply> manyRequests(int port, const std::vector<std::string>& requests, std::chrono::seconds patience);

} // namespace vitrine::test
