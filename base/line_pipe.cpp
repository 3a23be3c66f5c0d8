// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/line_pipe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <limits>
#include <poll.h>
#include <unistd.h>

namespace vitrine::base {

namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 20;

/// While it lives, a write to a pipe that nobody reads raises no signal in this thread.
class NoPipeSignal {
public:
    NoPipeSignal() {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigset_t waiting;
        sigpending(&waiting);
        waited_ = sigismember(&waiting, SIGPIPE) == 1;
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~NoPipeSignal() {
        if (!waited_) {
            const timespec now{};
            while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
            }
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoPipeSignal(const NoPipeSignal&) = delete; // one begin, one end
    NoPipeSignal& operator=(const NoPipeSignal&) = delete;

private:
    sigset_t pipe_{}, before_{};
    bool waited_ = false; ///< for someone else
};

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
            tooLong_ = true;
            buffer_ = {}; // it is large
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

LineReader::Arrived LineReader::wait(std::chrono::milliseconds most, int wake) const {
    if (buffer_.find('\n', begin_) != std::string::npos) {
        return Arrived::Input;
    }
    std::array<pollfd, 2> ends{{{descriptor_, POLLIN, 0}, {wake, POLLIN, 0}}};
    const auto longest = std::chrono::milliseconds(std::numeric_limits<int>::max());
    if (::poll(ends.data(), ends.size(),
               static_cast<int>(std::clamp(most, std::chrono::milliseconds(0), longest).count())) <= 0) {
        return Arrived::Nothing;
    }
    return ends[1].revents != 0 ? Arrived::Wake : Arrived::Input;
}

bool writeLine(int descriptor, std::string_view line) {
    const NoPipeSignal quiet;
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

} // namespace vitrine::base
