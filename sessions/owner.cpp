// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/owner.h"

#include <array>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unistd.h>

namespace vitrine::sessions {

namespace {

constexpr std::int64_t kHeartbeatLimitMs = 60'000;

std::string firstLine(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::string processNamespace() {
    std::array<char, 64> target{};
    const ssize_t size = ::readlink("/proc/self/ns/pid", target.data(), target.size());
    return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string("pid:?");
}

/// Start time of a living process, or -1 when there is none (a process that only waits to be collected counts as dead).
std::int64_t startTime(std::int64_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    // Field 2 is the program's name in parentheses and may hold anything; field 3 follows the last one.
    const std::size_t name = line.rfind(')');
    if (name == std::string::npos) {
        return -1;
    }
    std::istringstream fields(line.substr(name + 1));
    std::string state;
    fields >> state;
    if (state.empty() || state == "Z" || state == "X") {
        return -1;
    }
    constexpr int kStateField = 3;
    constexpr int kStartField = 22;
    std::string field;
    for (int number = kStateField + 1; number <= kStartField; ++number) {
        fields >> field;
    }
    std::int64_t ticks = -1;
    std::istringstream(field) >> ticks;
    return ticks;
}

const std::string& thisMachine() {
    static const std::string kMachine = firstLine("/proc/sys/kernel/random/boot_id") + " " + processNamespace();
    return kMachine;
}

} // namespace

Owner thisProcess() {
    // Read each time: after a fork it is another process.
    const std::int64_t pid = ::getpid();
    return {thisMachine(), pid, startTime(pid)};
}

bool ownerIsGone(const Owner& owner, std::int64_t heartbeatMs, std::int64_t nowMs) {
    if (owner.machine == thisMachine()) {
        const std::int64_t start = startTime(owner.pid);
        return start < 0 || start != owner.start;
    }
    return nowMs - heartbeatMs > kHeartbeatLimitMs;
}

} // namespace vitrine::sessions
