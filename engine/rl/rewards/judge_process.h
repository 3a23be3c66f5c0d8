// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One process of a judging program: it is sent lines and says lines, and nothing here waits for it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/descriptor.h"

namespace vitrine::engine {

/// Its standard error goes to the log. It has a process group of its own, so that Ctrl-C in a terminal does not reach
/// it and its children end with it. When this program ends in any way, they are killed. One thread, in which SIGPIPE is
/// blocked.
class JudgeProcess {
public:
    /// Starts /bin/sh -c COMMAND. Nobody writes to the life line: its end can be read once this program is gone,
    /// however that came. Throws Internal when there are no more processes or descriptors.
    JudgeProcess(const std::string& command, const base::Pipe& lifeLine);
    /// Kills it and waits until it is gone, two seconds at most.
    ~JudgeProcess();
    JudgeProcess(const JudgeProcess&) = delete; // one process, one owner
    JudgeProcess& operator=(const JudgeProcess&) = delete;

    pid_t group() const { return pid_; }

    /// Begins to send a line, given without its end. REQUIRES hasSent().
    void send(std::string line);
    bool hasSent() const { return unsent_.empty(); }

    /// Adds what work() waits for.
    void addTo(std::vector<pollfd>& polled) const;
    /// Reads and writes what goes at once.
    void work();
    /// The next whole line of its output, without its end.
    std::optional<std::string> takeLine();
    /// There is output that takeLine() did not give.
    bool hasOutput() const { return !output_.empty(); }
    /// The next line is longer than any answer; no more is read.
    bool isTooLong() const;
    /// It reads no more, or will say no more: it ends, or is about to.
    bool isClosed() const { return !in_.isOpen() || !out_.isOpen(); }

    /// "ended with code 1" or "was ended by signal 9 (Killed)"; nothing while it is there. Its number stays taken.
    std::optional<std::string> end() const;
    /// The last line of its standard error, made fit for a message; empty: none.
    std::string lastError() const;

    /// Ends the process and its children. After it only isGone() may be called.
    void kill();
    /// Whether it is gone for good.
    bool isGone();

private:
    void readOutput();
    void readErrors();
    void logErrorLine(std::string_view line);

    pid_t pid_ = -1;
    bool gone_ = false;
    base::Descriptor in_, out_, errors_;
    std::string unsent_;
    std::size_t sent_ = 0; ///< bytes of unsent_ that are written
    std::string output_;
    std::string errorLine_; ///< the beginning of a line that has no end yet
    std::string lastError_;
    std::int64_t errorLines_ = 0;
};

} // namespace vitrine::engine
