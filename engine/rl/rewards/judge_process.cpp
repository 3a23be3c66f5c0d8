// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rewards/judge_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/rl/rewards/judge_lines.h"
#include "engine/tokenizer/unicode_text.h"

extern char** environ; // NOLINT(readability-redundant-declaration): POSIX asks programs to declare it

namespace vitrine::engine {

namespace {

constexpr std::int64_t kErrorLinesLogged = 20;         ///< of a process
constexpr std::size_t kErrorLineShown = 300;           ///< bytes
constexpr std::size_t kReadAtOnce = 2 * kLongestReply; ///< a process's last answer is read whole
constexpr std::chrono::seconds kLongestEnd{2};

/// What /bin/sh does before it becomes the judge. It leaves a process in the judge's group that waits for the end of
/// the life line and then kills the group. That one is nobody's child, so that no judge waits for it, and holds none of
/// the judge's streams.
constexpr const char* kLeash = R"(( { read -r end <&3; kill -9 0; } </dev/null >/dev/null 2>&1 & )
exec /bin/sh -c "$1" sh 3<&-)";

/// Frees what posix_spawn is told.
struct SpawnPlan {
    SpawnPlan() {
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawnattr_init(&attributes);
    }
    ~SpawnPlan() {
        ::posix_spawn_file_actions_destroy(&actions);
        ::posix_spawnattr_destroy(&attributes);
    }
    SpawnPlan(const SpawnPlan&) = delete; // frees once
    SpawnPlan& operator=(const SpawnPlan&) = delete;
    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
};

/// Reads a descriptor that does not wait until there is nothing more for now, 2 MiB at most. Closes it at its end.
void readNow(base::Descriptor& from, std::string& into) {
    std::array<char, 16384> piece{};
    for (std::size_t read = 0; from.isOpen() && read < kReadAtOnce;) {
        const ssize_t got = ::read(from.get(), piece.data(), piece.size());
        if (got > 0) {
            into.append(piece.data(), static_cast<std::size_t>(got));
            read += static_cast<std::size_t>(got);
        } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
            from.reset();
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

/// A line of somebody else's for the log: short, one line, UTF-8.
std::string shownErrorLine(std::string_view line) {
    std::string shown = replaceInvalidUtf8(line.substr(0, kErrorLineShown));
    std::replace_if(shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    shown.erase(shown.find_last_not_of(' ') + 1);
    return line.size() > kErrorLineShown ? shown + "..." : shown;
}

} // namespace

JudgeProcess::JudgeProcess(const std::string& command, const base::Pipe& lifeLine) {
    base::Pipe in, out, errors;
    // Above the standard streams, so that none of these takes its place before its turn.
    const base::Descriptor line(::fcntl(lifeLine.read.get(), F_DUPFD_CLOEXEC, 3));
    SpawnPlan plan;
    // They lie in this order: where our own standard streams are closed, none is written over before its turn.
    ::posix_spawn_file_actions_adddup2(&plan.actions, in.read.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&plan.actions, out.write.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&plan.actions, errors.write.get(), STDERR_FILENO);
    ::posix_spawn_file_actions_adddup2(&plan.actions, line.get(), 3);
    sigset_t none, pipe;
    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE); // this program ignores it, which others are not used to
    ::posix_spawnattr_setsigmask(&plan.attributes, &none);
    ::posix_spawnattr_setsigdefault(&plan.attributes, &pipe);
    ::posix_spawnattr_setpgroup(&plan.attributes, 0);
    ::posix_spawnattr_setflags(&plan.attributes,
                               POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::array<std::string, 5> words{"sh", "-c", kLeash, "sh", command};
    std::array<char*, 6> arguments{words[0].data(), words[1].data(), words[2].data(),
                                   words[3].data(), words[4].data(), nullptr};
    base::setNonBlocking(in.write);
    base::setNonBlocking(out.read);
    base::setNonBlocking(errors.read);
    const int error = ::posix_spawn(&pid_, "/bin/sh", &plan.actions, &plan.attributes, arguments.data(), environ);
    if (error != 0) {
        throw base::Internal(fmt::format("reward_command: /bin/sh could not be started: {}", std::strerror(error)));
    }
    in_ = std::move(in.write);
    out_ = std::move(out.read);
    errors_ = std::move(errors.read);
}

JudgeProcess::~JudgeProcess() {
    kill();
    // A process that hangs in the system cannot end; nobody waits for it longer than that.
    const auto last = std::chrono::steady_clock::now() + kLongestEnd;
    while (!isGone() && std::chrono::steady_clock::now() < last) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void JudgeProcess::send(std::string line) {
    unsent_ = std::move(line);
    unsent_ += '\n';
    sent_ = 0;
    work();
}

void JudgeProcess::addTo(std::vector<pollfd>& polled) const {
    if (in_.isOpen() && !unsent_.empty()) {
        polled.push_back({in_.get(), POLLOUT, 0});
    }
    if (out_.isOpen() && !isTooLong()) {
        polled.push_back({out_.get(), POLLIN, 0});
    }
    if (errors_.isOpen()) {
        polled.push_back({errors_.get(), POLLIN, 0});
    }
}

void JudgeProcess::work() {
    while (in_.isOpen() && !unsent_.empty()) {
        const ssize_t wrote = ::write(in_.get(), unsent_.data() + sent_, unsent_.size() - sent_);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0 && errno == EAGAIN) {
            break;
        }
        if (wrote < 0) {
            in_.reset();
            break;
        }
        sent_ += static_cast<std::size_t>(wrote);
        if (sent_ == unsent_.size()) {
            unsent_.clear();
        }
    }
    readOutput();
    readErrors();
}

void JudgeProcess::readOutput() {
    if (!isTooLong()) {
        readNow(out_, output_);
    }
}

bool JudgeProcess::isTooLong() const {
    return std::min(output_.find('\n'), output_.size()) > kLongestReply;
}

std::optional<std::string> JudgeProcess::takeLine() {
    const std::size_t end = output_.find('\n');
    if (end == std::string::npos || end > kLongestReply) {
        return std::nullopt;
    }
    std::string line = output_.substr(0, end);
    output_.erase(0, end + 1);
    return line;
}

void JudgeProcess::readErrors() {
    std::string text;
    readNow(errors_, text);
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
        errorLine_ += text.substr(begin, end - begin);
        logErrorLine(errorLine_);
        errorLine_.clear();
        begin = end + 1;
    }
    // Of a line without an end no more is kept than is shown, and one byte to know that it is longer.
    errorLine_ += text.substr(begin);
    errorLine_.resize(std::min(errorLine_.size(), kErrorLineShown + 1));
}

void JudgeProcess::logErrorLine(std::string_view line) {
    std::string shown = shownErrorLine(line);
    if (shown.empty()) {
        return;
    }
    lastError_ = std::move(shown);
    ++errorLines_;
    if (errorLines_ <= kErrorLinesLogged) {
        base::logWarning(fmt::format("reward_command: {}", lastError_));
    } else if (errorLines_ == kErrorLinesLogged + 1) {
        base::logWarning("reward_command: more lines of this process's standard error are left out");
    }
}

std::string JudgeProcess::lastError() const {
    const std::string begun = shownErrorLine(errorLine_);
    return begun.empty() ? lastError_ : begun;
}

std::optional<std::string> JudgeProcess::end() const {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG) != 0) {
        return errno == ECHILD ? std::optional<std::string>("ended") : std::nullopt;
    }
    if (info.si_pid == 0) {
        return std::nullopt;
    }
    if (info.si_code == CLD_EXITED) {
        return fmt::format("ended with code {}", info.si_status);
    }
    return fmt::format("was ended by signal {} ({})", info.si_status, ::strsignal(info.si_status));
}

void JudgeProcess::kill() {
    if (!errorLine_.empty()) {
        logErrorLine(std::exchange(errorLine_, {}));
    }
    in_.reset();
    out_.reset();
    errors_.reset();
    if (!gone_) {
        ::kill(-pid_, SIGKILL); // the group has its number until the process is waited for
    }
}

bool JudgeProcess::isGone() {
    if (!gone_) {
        const pid_t waited = ::waitpid(pid_, nullptr, WNOHANG);
        gone_ = waited == pid_ || (waited < 0 && errno == ECHILD);
    }
    return gone_;
}

} // namespace vitrine::engine
