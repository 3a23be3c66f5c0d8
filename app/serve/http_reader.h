// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Requests of HTTP/1.1 and 1.0 from the bytes of a connection, without a socket. What could be read in two ways is
// refused: lengths that differ, a length beside chunks, lines that do not end with CR LF, folded headers.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/serve/api_request.h"

namespace vitrine::app {

/// With ASCII letters in lower case.
std::string lowerCase(std::string_view text);

using HttpHeaderList = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
    std::string method;
    std::string path;       ///< percent-decoded, without a query
    HttpHeaderList headers; ///< names in lower case
    std::string body;
    bool old = false;            ///< HTTP/1.0
    bool keepsConnection = true; ///< the client wants to send more on it
    bool chunked = false;
    std::uint64_t length = 0; ///< of the body, unless it is chunked

    /// The first of this name, given in lower case; empty where there is none.
    std::string_view header(std::string_view name) const;
    bool hasBody() const { return chunked || length > 0; }
};

class HttpReader {
public:
    static constexpr std::size_t kMostLine = std::size_t{8} << 10; ///< bytes of the request line
    static constexpr std::size_t kMostHead = std::size_t{32} << 10;
    static constexpr std::size_t kMostHeaders = 100;

    enum class Progress : std::uint8_t {
        NeedsMore,
        Head, ///< of a request whose body is read by further calls
        Whole
    };
    /// Takes what it can use off the front of `bytes`. Throws ApiError: 400, 413, 414, 431, 501, 505; what follows on
    /// the connection means nothing then.
    Progress read(std::string& bytes);
    HttpRequest& request() { return request_; }
    const HttpRequest& request() const { return request_; }
    /// The next request begins.
    void reset() { *this = HttpReader(); }

private:
    enum class State : std::uint8_t { Head, Begun, Length, ChunkSize, Chunk, ChunkEnd, Trailers, Whole };

    Progress take(std::string_view& bytes);
    bool readHead(std::string_view& bytes);
    bool readBody(std::string_view& bytes);
    bool readChunkSize(std::string_view& bytes);
    bool readTrailer(std::string_view& bytes);
    void append(std::string_view& bytes);
    void parseHead(std::string_view head);
    void parseRequestLine(std::string_view line);
    void parseHeader(std::string_view line);
    void findBody();

    HttpRequest request_;
    State state_ = State::Head;
    std::size_t scanned_ = 0;      ///< bytes in which no end of the head was found
    std::uint64_t left_ = 0;       ///< of the body or the chunk
    std::size_t trailerBytes_ = 0; ///< read so far
};

} // namespace vitrine::app
