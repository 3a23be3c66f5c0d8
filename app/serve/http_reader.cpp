// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/http_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <optional>

#include "app/serve/http_rules.h"

namespace vitrine::app {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::size_t kMostChunkLine = 1024;

[[noreturn]] void malformed(const std::string& what) {
    throw ApiError(kBadRequest, what, {}, "malformed_request");
}

bool isTokenCharacter(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool isToken(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, isTokenCharacter);
}

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    return begin == std::string_view::npos ? std::string_view()
                                           : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// How many bytes of `bytes` surely stand before an ending of so many bytes, which was found at `at` or not yet.
std::size_t surelyBefore(std::string_view bytes, std::size_t at, std::size_t ending) {
    return at != std::string_view::npos ? at : bytes.size() - std::min(bytes.size(), ending - 1);
}

std::optional<std::uint64_t> wholeNumber(std::string_view text, int base) {
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return problem == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::string percentDecoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        const std::string_view digits = text.substr(i + 1, 2);
        const std::optional<std::uint64_t> byte = digits.size() == 2 ? wholeNumber(digits, 16) : std::nullopt;
        if (!byte || *byte == 0) {
            malformed("the address has a % that is not followed by the digits of a byte");
        }
        out += static_cast<char>(*byte);
        i += 2;
    }
    return out;
}

/// The path of "/v1/models?x=1" and of "http://host/v1/models".
std::string pathOf(std::string_view target) {
    for (const std::string_view scheme : {std::string_view("http://"), std::string_view("https://")}) {
        if (lowerCase(target.substr(0, scheme.size())) == scheme) {
            target.remove_prefix(scheme.size());
            const std::size_t slash = target.find('/');
            target = slash == std::string_view::npos ? "/" : target.substr(slash);
        }
    }
    if (!target.starts_with('/') && target != "*") {
        malformed("the address of the request line must begin with /");
    }
    return percentDecoded(target.substr(0, target.find('?')));
}

} // namespace

std::string lowerCase(std::string_view text) {
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

std::string_view HttpRequest::header(std::string_view name) const {
    const auto found = std::ranges::find(headers, name, &std::pair<std::string, std::string>::first);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

HttpReader::Progress HttpReader::read(std::string& bytes) {
    std::string_view rest = bytes;
    const Progress progress = take(rest);
    // Once for all pieces of a body: a client may send many small ones.
    bytes.erase(0, bytes.size() - rest.size());
    return progress;
}

HttpReader::Progress HttpReader::take(std::string_view& bytes) {
    if (state_ == State::Head) {
        if (!readHead(bytes)) {
            return Progress::NeedsMore;
        }
        state_ = State::Begun;
        return Progress::Head;
    }
    if (state_ == State::Begun) {
        if (!request_.chunked && request_.length > kMostBodyBytes) {
            throw bodyTooLarge();
        }
        left_ = request_.length;
        state_ = request_.chunked ? State::ChunkSize : State::Length;
    }
    while (state_ != State::Whole) {
        if (!readBody(bytes)) {
            return Progress::NeedsMore;
        }
    }
    return Progress::Whole;
}

/// False where the head is not whole.
bool HttpReader::readHead(std::string_view& bytes) {
    while (bytes.starts_with(kLineEnd)) {
        bytes.remove_prefix(kLineEnd.size()); // some clients send one more after a body
    }
    if (!bytes.empty() && bytes != "\r" && !isTokenCharacter(bytes.front())) {
        malformed("this is no request of HTTP; the server does not speak HTTPS");
    }
    const std::size_t end = bytes.find(kHeadEnd, scanned_ > 3 ? scanned_ - 3 : 0);
    if (surelyBefore(bytes, bytes.find(kLineEnd), kLineEnd.size()) > kMostLine) {
        throw ApiError(414, fmt::format("the request line is longer than {} bytes", kMostLine), {}, "uri_too_long");
    }
    if (surelyBefore(bytes, end, kHeadEnd.size()) > kMostHead) {
        throw ApiError(431, fmt::format("the headers are longer than {} bytes", kMostHead), {}, "headers_too_large");
    }
    scanned_ = bytes.size();
    if (end == std::string_view::npos) {
        return false;
    }
    parseHead(bytes.substr(0, end + kLineEnd.size()));
    bytes.remove_prefix(end + kHeadEnd.size());
    findBody();
    return true;
}

void HttpReader::parseHead(std::string_view head) {
    bool first = true;
    while (!head.empty()) {
        const std::size_t end = head.find(kLineEnd);
        const std::string_view line = head.substr(0, end);
        if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
            malformed("a line of the head does not end with CR LF, or has a NUL in it");
        }
        if (first) {
            parseRequestLine(line);
        } else {
            parseHeader(line);
        }
        first = false;
        head.remove_prefix(end + kLineEnd.size());
    }
}

void HttpReader::parseRequestLine(std::string_view line) {
    const std::size_t one = line.find(' ');
    const std::size_t two = one == std::string_view::npos ? one : line.find(' ', one + 1);
    const std::string_view method = line.substr(0, one);
    if (two == std::string_view::npos || !isToken(method) || line.find(' ', two + 1) != std::string_view::npos) {
        malformed("the first line must be METHOD PATH HTTP/1.1");
    }
    const std::string_view version = line.substr(two + 1);
    if (!version.starts_with("HTTP/")) {
        malformed("the first line must end with HTTP/1.1");
    }
    if (version != "HTTP/1.1" && version != "HTTP/1.0") {
        throw ApiError(505, "the server speaks HTTP/1.1 and HTTP/1.0 only", {}, "version_not_supported");
    }
    request_.method = method;
    request_.old = version == "HTTP/1.0";
    request_.path = pathOf(line.substr(one + 1, two - one - 1));
}

void HttpReader::parseHeader(std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !isToken(line.substr(0, colon))) {
        malformed("a header must be NAME: VALUE on one line");
    }
    if (request_.headers.size() == kMostHeaders) {
        throw ApiError(431, fmt::format("there are more than {} headers", kMostHeaders), {}, "headers_too_large");
    }
    request_.headers.emplace_back(lowerCase(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
}

/// What the headers say of the body and of the connection.
void HttpReader::findBody() {
    std::optional<std::uint64_t> length;
    int hosts = 0;
    std::string coding;
    for (const auto& [name, value] : request_.headers) {
        if (name == "content-length") {
            const bool digits =
                !value.empty() && std::ranges::all_of(value, [](unsigned char c) { return std::isdigit(c); });
            const std::optional<std::uint64_t> one = digits ? wholeNumber(value, 10) : std::nullopt;
            if (digits && !one) {
                throw bodyTooLarge();
            }
            if (!one || (length && *length != *one)) {
                malformed(one ? "Content-Length: stands twice with different lengths"
                              : "Content-Length: must be a whole number");
            }
            length = one;
        } else if (name == "transfer-encoding") {
            coding += (coding.empty() ? "" : ", ") + lowerCase(value);
        } else if (name == "host") {
            ++hosts;
        } else if (name == "connection") {
            request_.keepsConnection = request_.keepsConnection && lowerCase(value).find("close") == std::string::npos;
        }
    }
    if (hosts > 1 || (hosts == 0 && !request_.old)) {
        malformed(hosts == 0 ? "Host: missing" : "Host: stands more than once");
    }
    request_.keepsConnection = request_.keepsConnection && !request_.old;
    if (coding.empty()) {
        request_.length = length.value_or(0);
        return;
    }
    if (length) {
        malformed("Content-Length and Transfer-Encoding: give one of them");
    }
    if (coding != "chunked" || request_.old) {
        throw ApiError(501, "Transfer-Encoding: only chunked is supported, in HTTP/1.1", {}, "coding_not_supported");
    }
    request_.chunked = true;
}

/// One piece of the body; false where bytes are missing.
bool HttpReader::readBody(std::string_view& bytes) {
    switch (state_) {
    case State::Length:
    case State::Chunk:
        append(bytes);
        if (left_ > 0) {
            return false;
        }
        state_ = state_ == State::Chunk ? State::ChunkEnd : State::Whole;
        return true;
    case State::ChunkEnd:
        if (bytes.size() < kLineEnd.size()) {
            return false;
        }
        if (!bytes.starts_with(kLineEnd)) {
            malformed("a chunk of the body is longer than it says");
        }
        bytes.remove_prefix(kLineEnd.size());
        state_ = State::ChunkSize;
        return true;
    case State::ChunkSize:
        return readChunkSize(bytes);
    default:
        return readTrailer(bytes);
    }
}

void HttpReader::append(std::string_view& bytes) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
    request_.body.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    left_ -= count;
}

bool HttpReader::readChunkSize(std::string_view& bytes) {
    const std::size_t end = bytes.find(kLineEnd);
    if (surelyBefore(bytes, end, kLineEnd.size()) > kMostChunkLine) {
        malformed("the size of a chunk has too many digits");
    }
    if (end == std::string_view::npos) {
        return false;
    }
    const std::string_view line = bytes.substr(0, end);
    const std::optional<std::uint64_t> size = wholeNumber(trimmed(line.substr(0, line.find(';'))), 16);
    if (!size) {
        malformed("the size of a chunk is not a number of hexadecimal digits");
    }
    if (*size > kMostBodyBytes || request_.body.size() + *size > kMostBodyBytes) {
        throw bodyTooLarge();
    }
    bytes.remove_prefix(end + kLineEnd.size());
    left_ = *size;
    state_ = *size > 0 ? State::Chunk : State::Trailers;
    return true;
}

/// Lines after the last chunk mean nothing here.
bool HttpReader::readTrailer(std::string_view& bytes) {
    const std::size_t end = bytes.find(kLineEnd);
    if (trailerBytes_ + surelyBefore(bytes, end, kLineEnd.size()) > kMostHead) {
        throw ApiError(431, fmt::format("the trailers are longer than {} bytes", kMostHead), {}, "headers_too_large");
    }
    if (end == std::string_view::npos) {
        return false;
    }
    trailerBytes_ += end;
    state_ = end == 0 ? State::Whole : State::Trailers;
    bytes.remove_prefix(end + kLineEnd.size());
    return true;
}

} // namespace vitrine::app
