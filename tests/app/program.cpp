// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "tests/app/program.h"

#include <array>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture_paths.h"

namespace vitrine::test {

namespace {

constexpr int kWaitMs = 60'000;

std::array<int, 2> makePipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw std::runtime_error("no pipe");
    }
    return ends;
}

} // namespace

Program::Program(const std::vector<std::string>& arguments) : Program(vitrineProgram(), arguments) {}

Program::Program(const std::string& program, const std::vector<std::string>& arguments) {
    const auto out = makePipe();
    const auto err = makePipe();
    std::vector<char*> words{const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) {
        words.push_back(const_cast<char*>(argument.c_str()));
    }
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
        ::dup2(out[1], STDOUT_FILENO);
        ::dup2(err[1], STDERR_FILENO);
        const int nothing = ::open("/dev/null", O_RDONLY);
        ::dup2(nothing, STDIN_FILENO);
        ::execv(program.c_str(), words.data());
        ::_exit(127);
    }
    ::close(out[1]);
    ::close(err[1]);
    out_ = out[0];
    err_ = err[0];
}

Program::~Program() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    for (const int end : {out_, err_}) {
        if (end >= 0) {
            ::close(end);
        }
    }
}

void Program::signal(int number) const {
    ::kill(pid_, number);
}

bool Program::readSome(int timeoutMs) {
    std::array<pollfd, 2> ends{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
    if (::poll(ends.data(), ends.size(), timeoutMs) <= 0) {
        return out_ >= 0 || err_ >= 0;
    }
    std::array<char, 65536> buffer{};
    for (const pollfd& end : ends) {
        if ((end.revents & (POLLIN | POLLHUP)) == 0) {
            continue;
        }
        const ssize_t size = ::read(end.fd, buffer.data(), buffer.size());
        int& open = end.fd == out_ ? out_ : err_;
        if (size <= 0) {
            ::close(open);
            open = -1;
        } else {
            (end.fd == out_ ? result_.out : result_.err).append(buffer.data(), static_cast<std::size_t>(size));
        }
    }
    return out_ >= 0 || err_ >= 0;
}

bool Program::waitFor(const std::string& where, const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kWaitMs);
    while (where.find(text) == std::string::npos) {
        if (std::chrono::steady_clock::now() > end || !readSome(100)) {
            return false;
        }
    }
    return true;
}

ProgramResult Program::wait() {
    while (readSome(kWaitMs)) {
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    result_.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result_;
}

ProgramResult vitrine(const std::vector<std::string>& arguments) {
    return Program(arguments).wait();
}

} // namespace vitrine::test
