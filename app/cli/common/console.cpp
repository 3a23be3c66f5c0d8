// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/common/console.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "app/runner/host/outcome.h"
#include "base/error.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::app {

namespace {

constexpr int kDefaultColumns = 80;

std::atomic<bool> readerGone = false; ///< of standard output

int terminalColumns() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kDefaultColumns;
}

} // namespace

void keepStandardStreams() {
    // A folder fails every read and write, and it cannot be opened for writing as /dev/stdout either.
    constexpr const char* kFails = "/";
    constexpr const char* kTakesAll = "/dev/null";
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) {
            // The lowest free number is this one, because those below it are open.
            const int made = stream == STDERR_FILENO ? ::open(kTakesAll, O_WRONLY) : ::open(kFails, O_RDONLY);
            if (made != stream && made >= 0) {
                ::close(made);
            }
        }
    }
}

void printOut(std::string_view text) {
    const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
    if (written != text.size() || std::fflush(stdout) != 0) {
        readerGone = errno == EPIPE;
        throw base::Internal(fmt::format("standard output: cannot be written ({})", std::strerror(errno)));
    }
}

void printJson(const nlohmann::json& value) {
    printOut(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void printErrorText(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

void printError(std::string_view message) {
    if (!readerGone) {
        printErrorText(fmt::format("vitrine: error: {}\n", engine::replaceInvalidUtf8(oneLine(message))));
    }
}

int reportFailure(const GlobalOptions& options, const std::exception_ptr& error) {
    const RunOutcome outcome = outcomeOf(error);
    printError(outcome.error);
    if (options.json) {
        try {
            printJson({{"error", errorJson(error)}});
        } catch (const base::Error&) {
            return outcome.exitCode; // standard output is gone, as the line above may say already
        }
    }
    return outcome.exitCode;
}

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressBar::show(std::string_view what, std::uint64_t done, std::uint64_t total) {
    if (!terminal_) {
        return;
    }
    constexpr int kBar = 24;
    std::string tail;
    if (total > 0) {
        const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
        const int full = static_cast<int>(share * kBar);
        tail = fmt::format(" [{:#<{}}{:.<{}}] {:3.0f} %", "", full, "", kBar - full, share * 100);
    } else if (done > 0) {
        tail = fmt::format(" {}", done);
    }
    const auto room = static_cast<std::size_t>(std::max(8, terminalColumns() - 1 - static_cast<int>(tail.size())));
    printErrorText(fmt::format("\r\033[K{}{}", what.substr(0, room), tail));
    drawn_ = true;
}

void ProgressBar::clear() {
    if (drawn_) {
        printErrorText("\r\033[K");
        drawn_ = false;
    }
}

} // namespace vitrine::app
