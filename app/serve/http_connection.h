// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One client's connection: requests in, answers out, one after the other. It never blocks. All functions but wake()
// belong to the thread of its loop (http_loop.h).
//
// A client may close its sending side after a request and still gets the answer. Whether it is there at all shows when
// something is sent: a connection that waits for an answer sends "100 Continue" then, and a stream a comment.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/serve/exchange.h"
#include "app/serve/http_reader.h"

namespace vitrine::app {

struct HttpReply {
    int status = 200; ///< 204: without a body
    std::string body;
    std::string type = "application/json";
    HttpHeaderList headers;
};

/// What is known at once, or what comes.
using HttpAnswer = std::variant<HttpReply, std::shared_ptr<Exchange>>;

/// What all connections of a server share. Any thread may call it.
class HttpSite {
public:
    virtual ~HttpSite() = default;
    /// Throws ApiError for what is refused before its body is read.
    virtual void checkHead(const HttpRequest& request) const = 0;
    /// Of a whole request. Throws ApiError.
    virtual HttpAnswer answer(const HttpRequest& request) = 0;
    /// `request`: as far as it was read.
    virtual HttpReply errorReply(const ApiError& error, const HttpRequest& request) const = 0;
    /// Headers that every answer to the request has, errors included.
    virtual HttpHeaderList headersOf(const HttpRequest& request) const = 0;
    /// An answer with this status begins.
    virtual void answered(int status) = 0;
    /// Counts bytes of bodies, negative when they are freed; false where all together are too many.
    virtual bool hold(std::int64_t bytes) = 0;
};

class HttpConnection final : public Sleeper {
public:
    using Clock = std::chrono::steady_clock;

    /// Takes over the socket, which does not block. `wakeLoop` is called on any thread, when an answer goes on.
    HttpConnection(int socket, HttpSite& site, std::function<void()> wakeLoop);
    ~HttpConnection() override;                     ///< closes it; its requests are cancelled
    HttpConnection(const HttpConnection&) = delete; // exchanges hold its address
    HttpConnection& operator=(const HttpConnection&) = delete;

    int socket() const { return socket_; }
    /// What epoll is to tell.
    std::uint32_t interest() const;
    /// What epoll told. False: the connection has ended. So do the next two.
    bool happened(std::uint32_t events);
    /// Its answer goes on.
    bool goOn();
    /// Whether it may go on at `now`: a request must be whole, and an answer must move, within `patience`.
    bool inTime(Clock::time_point now, std::chrono::seconds patience);

    /// Whether it waits for a request, or for the rest of one.
    bool idle() const { return state_ == State::Reading && out_.empty(); }
    Clock::time_point since() const { return since_; }
    /// After the present answer the connection ends.
    void endSoon() { ends_ = true; }
    /// Sends this error and ends.
    bool refuse(const ApiError& error);

    void sleep() override {} // it waits in its loop
    void wake() override { wakeLoop_(); }

private:
    enum class State : std::uint8_t { Reading, Waiting, Streaming, Sent, Lingering };

    bool receive();
    bool flush();
    bool advance(bool& waits);
    bool readRequest();
    void takeBody();
    void begin();
    bool takeReply();
    bool takeBytes(bool& waits);
    bool endAnswer();
    void respond(const HttpReply& reply);
    void fail(const ApiError& error);
    void probe();
    void release();

    const int socket_;
    HttpSite& site_;
    const std::function<void()> wakeLoop_;
    State state_ = State::Reading;
    HttpReader reader_;
    std::string in_, out_;
    std::size_t sent_ = 0; ///< of out_
    std::shared_ptr<Exchange> exchange_;
    std::int64_t held_ = 0;   ///< bytes of the body, counted by the site
    bool readEnded_ = false;  ///< nothing more comes from the client
    bool halfClosed_ = false; ///< seen while it waited for an answer
    bool ends_ = false;       ///< with the present answer
    bool chunks_ = false;     ///< the stream is sent in chunks
    std::size_t drained_ = 0; ///< bytes that were dropped while it lingers
    Clock::time_point since_; ///< when it began to wait for a request, the request began, or the answer moved last
};

} // namespace vitrine::app
