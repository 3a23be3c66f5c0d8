// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/line_pipe.h"

#include <array>
#include <cerrno>
#include <unistd.h>

namespace vitrine::app {

namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 20;

} // namespace

std::optional<std::string> LineReader::next() {
    std::size_t searched = begin_;
    while (true) {
        const std::size_t end = buffer_.find('\n', searched);
        if (end != std::string::npos) {
            std::string line = buffer_.substr(begin_, end - begin_);
            begin_ = end + 1;
            return line;
        }
        buffer_.erase(0, begin_);
        begin_ = 0;
        searched = buffer_.size();
        if (buffer_.size() > kLongestLine) {
            return std::nullopt;
        }
        std::array<char, 65536> piece{};
        const ssize_t got = ::read(descriptor_, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return std::nullopt;
        }
        buffer_.append(piece.data(), static_cast<std::size_t>(got));
    }
}

bool writeLine(int descriptor, std::string_view line) {
    std::string text(line);
    text += '\n';
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t wrote = ::write(descriptor, text.data() + done, text.size() - done);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            return false;
        }
        done += static_cast<std::size_t>(wrote);
    }
    return true;
}

} // namespace vitrine::app
