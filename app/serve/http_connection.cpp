// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/http_connection.h"

#include <array>
#include <cerrno>
#include <ctime>
#include <exception>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/log.h"

namespace vitrine::app {
namespace {

constexpr std::size_t kPiece = std::size_t{16} << 10; ///< bytes of a stream that are taken at once
constexpr std::size_t kReceive = std::size_t{64} << 10;
/// What a client may still send after an answer that did not wait for it: else it would not get to read the answer.
constexpr std::size_t kMostDrained = std::size_t{64} << 20;
constexpr std::chrono::seconds kLinger{5};

const char* reasonOf(int status) {
    switch (status) {
    case 200:
        return "OK";
    case 204:
        return "No Content";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 411:
        return "Length Required";
    case 413:
        return "Content Too Large";
    case 414:
        return "URI Too Long";
    case 415:
        return "Unsupported Media Type";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Internal Server Error";
    }
}

/// As HTTP writes it, whatever the locale.
std::string dateText() {
    constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays.at(static_cast<std::size_t>(parts.tm_wday)),
                       parts.tm_mday, kMonths.at(static_cast<std::size_t>(parts.tm_mon)), parts.tm_year + 1900,
                       parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string statusLine(int status) {
    return fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", status, reasonOf(status), dateText());
}

std::string headerLines(const HttpHeaderList& headers) {
    std::string out;
    for (const auto& [name, value] : headers) {
        out += fmt::format("{}: {}\r\n", name, value);
    }
    return out;
}

} // namespace

HttpConnection::HttpConnection(int socket, HttpSite& site, std::function<void()> wakeLoop)
    : socket_(socket), site_(site), wakeLoop_(std::move(wakeLoop)), since_(Clock::now()) {}

HttpConnection::~HttpConnection() {
    release();
    ::close(socket_);
}

/// Frees what the present request holds. Its requests are cancelled, unless the answer is whole.
void HttpConnection::release() {
    if (exchange_ != nullptr) {
        exchange_->detach();
        exchange_->abandon();
        exchange_.reset();
    }
    site_.hold(-std::exchange(held_, 0));
}

std::uint32_t HttpConnection::interest() const {
    std::uint32_t out = out_.empty() ? 0 : static_cast<std::uint32_t>(EPOLLOUT);
    if ((state_ == State::Reading && out_.empty()) || state_ == State::Lingering) {
        out |= static_cast<std::uint32_t>(EPOLLIN);
    } else if (!halfClosed_ && !readEnded_) {
        out |= static_cast<std::uint32_t>(EPOLLRDHUP);
    }
    return out;
}

bool HttpConnection::happened(std::uint32_t events) {
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
        return false; // the client is gone
    }
    if ((events & EPOLLIN) != 0 && !receive()) {
        return false;
    }
    if ((events & EPOLLRDHUP) != 0 && !halfClosed_) {
        halfClosed_ = true;
        probe();
    }
    return goOn();
}

/// Sends something that means nothing: a client that is gone answers with a reset.
void HttpConnection::probe() {
    if (!out_.empty() || reader_.request().old) {
        return; // it shows anyhow, or cannot be asked
    }
    if (state_ == State::Waiting) {
        out_ = "HTTP/1.1 100 Continue\r\n\r\n";
    } else if (state_ == State::Streaming && chunks_) {
        out_ = "3\r\n:\n\n\r\n"; // a comment among the events
    }
}

/// False where the socket is broken.
bool HttpConnection::receive() {
    std::array<char, kReceive> bytes{};
    const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (count == 0) {
        readEnded_ = true;
        return true;
    }
    if (state_ == State::Lingering) {
        drained_ += static_cast<std::size_t>(count);
        return drained_ <= kMostDrained;
    }
    if (in_.empty() && reader_.request().method.empty()) {
        since_ = Clock::now(); // a request begins
    }
    in_.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
}

/// Sends what waits, as far as the socket takes it. False where it is broken.
bool HttpConnection::flush() {
    while (sent_ < out_.size()) {
        const ssize_t count = ::send(socket_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        sent_ += static_cast<std::size_t>(count);
        since_ = Clock::now();
    }
    out_.clear();
    sent_ = 0;
    return true;
}

bool HttpConnection::goOn() {
    try {
        for (bool waits = false; !waits;) {
            if (!flush()) {
                return false;
            }
            if (!out_.empty()) {
                return true;
            }
            if (!advance(waits)) {
                return false;
            }
        }
        return true;
    } catch (const std::exception& failure) {
        base::logWarning(fmt::format("a request could not be answered: {}", failure.what()));
        return false;
    }
}

/// One step. False: the connection has ended. `waits`: it goes on when the client or the answer does.
bool HttpConnection::advance(bool& waits) {
    switch (state_) {
    case State::Reading:
        waits = !readRequest();
        return !waits || !readEnded_;
    case State::Waiting:
        waits = !takeReply();
        return !waits || !exchange_->abandoned();
    case State::Streaming:
        return takeBytes(waits);
    case State::Sent:
        return endAnswer();
    case State::Lingering:
        waits = true;
        return !readEnded_;
    }
    return false;
}

/// False where bytes are missing.
bool HttpConnection::readRequest() {
    try {
        for (;;) {
            const HttpReader::Progress progress = reader_.read(in_);
            takeBody();
            if (progress == HttpReader::Progress::NeedsMore) {
                return false;
            }
            if (progress == HttpReader::Progress::Whole) {
                begin();
                return true;
            }
            site_.checkHead(reader_.request());
            if (!reader_.request().old && reader_.request().hasBody() && in_.empty() &&
                reader_.request().header("expect") == "100-continue") {
                out_ = "HTTP/1.1 100 Continue\r\n\r\n";
                if (!flush()) {
                    readEnded_ = true;
                }
            }
        }
    } catch (const ApiError& error) {
        // What follows is not read as a request: the body may not have come, or its end is unknown.
        ends_ = true;
        fail(error);
        return true;
    }
}

/// Counts what came of the body.
void HttpConnection::takeBody() {
    const std::int64_t more = static_cast<std::int64_t>(reader_.request().body.size()) - held_;
    held_ += more;
    if (more > 0 && !site_.hold(more)) {
        throw ApiError(kUnavailable, "the server holds too many requests; try again");
    }
}

/// The request is whole.
void HttpConnection::begin() {
    ends_ = ends_ || !reader_.request().keepsConnection;
    try {
        HttpAnswer answer = site_.answer(reader_.request());
        if (const HttpReply* reply = std::get_if<HttpReply>(&answer)) {
            respond(*reply);
            return;
        }
        exchange_ = std::get<std::shared_ptr<Exchange>>(std::move(answer));
    } catch (const ApiError& error) {
        fail(error);
        return;
    } catch (const std::exception& failure) {
        fail(ApiError(kServerError, fmt::format("the request could not be answered: {}", failure.what())));
        return;
    }
    reader_.request().body = {};
    site_.hold(-std::exchange(held_, 0));
    if (!exchange_->stream()) {
        state_ = State::Waiting;
        return;
    }
    chunks_ = !reader_.request().old;
    out_ = statusLine(200) + "Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n" +
           headerLines(site_.headersOf(reader_.request())) + (chunks_ ? "Transfer-Encoding: chunked\r\n" : "") +
           (ends_ ? "Connection: close\r\n\r\n" : "\r\n");
    site_.answered(200);
    state_ = State::Streaming;
}

/// False: the answer is not there yet, and wakes this connection.
bool HttpConnection::takeReply() {
    if (exchange_->abandoned()) {
        return false;
    }
    const std::optional<Exchange::Reply> reply = exchange_->reply(*this);
    if (!reply) {
        return false;
    }
    if (reply->error) {
        fail(*reply->error);
    } else {
        respond({reply->status, reply->body, "application/json", {}});
    }
    return true;
}

bool HttpConnection::takeBytes(bool& waits) {
    std::array<char, kPiece> bytes{};
    const std::int64_t count = exchange_->read(bytes.data(), bytes.size(), *this);
    if (count == Exchange::kBroken) {
        return false;
    }
    waits = count == 0;
    if (count > 0) {
        const std::string_view piece(bytes.data(), static_cast<std::size_t>(count));
        out_ = chunks_ ? fmt::format("{:x}\r\n{}\r\n", piece.size(), piece) : std::string(piece);
    } else if (count == Exchange::kEnd) {
        out_ = chunks_ ? "0\r\n\r\n" : "";
        state_ = State::Sent;
    }
    return true;
}

/// The answer was sent. False: the connection ends with it.
bool HttpConnection::endAnswer() {
    release();
    if (ends_) {
        // A client that still sends would lose the answer to a reset.
        ::shutdown(socket_, SHUT_WR);
        state_ = State::Lingering;
        since_ = Clock::now();
        return !readEnded_;
    }
    reader_.reset();
    state_ = State::Reading;
    since_ = Clock::now();
    return true;
}

void HttpConnection::respond(const HttpReply& reply) {
    out_ = statusLine(reply.status);
    if (reply.status != kNoContent) {
        out_ += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", reply.type, reply.body.size());
    }
    out_ += headerLines(reply.headers) + headerLines(site_.headersOf(reader_.request()));
    out_ += ends_ ? "Connection: close\r\n\r\n" : "\r\n";
    if (reader_.request().method != "HEAD") {
        out_ += reply.body;
    }
    site_.answered(reply.status);
    state_ = State::Sent;
}

void HttpConnection::fail(const ApiError& error) {
    respond(site_.errorReply(error, reader_.request()));
}

bool HttpConnection::refuse(const ApiError& error) {
    ends_ = true;
    fail(error);
    return goOn();
}

bool HttpConnection::inTime(Clock::time_point now, std::chrono::seconds patience) {
    if (state_ == State::Lingering) {
        return now - since_ <= kLinger;
    }
    if (now - since_ <= patience || (out_.empty() && state_ != State::Reading)) {
        return true;
    }
    const bool begun = !in_.empty() || !reader_.request().method.empty();
    if (state_ != State::Reading || !begun) {
        return false;
    }
    return refuse(
        ApiError(408, fmt::format("the request was not whole within {} s", patience.count()), {}, "request_timeout"));
}

} // namespace vitrine::app
