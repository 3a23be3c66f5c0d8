// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs the built `vitrine` as a user does and looks at what it printed.

#include <string>
#include <sys/types.h>
#include <vector>

namespace vitrine::test {

struct ProgramResult {
    int exitCode = -1; ///< 128 + signal when a signal ended it
    std::string out, err;
};

/// A running program; killed when it is still there at the end.
class Program {
public:
    explicit Program(const std::vector<std::string>& arguments);
    Program(const std::string& program, const std::vector<std::string>& arguments);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void signal(int number) const;
    pid_t pid() const { return pid_; } ///< -1 when it has ended
    /// Waits until standard output holds `text` or the program ended; false when it ended or 60 s passed without it.
    bool waitForOutput(const std::string& text) { return waitFor(result_.out, text); }
    bool waitForError(const std::string& text) { return waitFor(result_.err, text); }
    /// Of standard output until now.
    const std::string& output() const { return result_.out; }
    ProgramResult wait();

private:
    bool readSome(int timeoutMs);
    bool waitFor(const std::string& where, const std::string& text);

    pid_t pid_ = -1;
    int out_ = -1, err_ = -1;
    ProgramResult result_;
};

/// `vitrine ARGUMENTS`
ProgramResult vitrine(const std::vector<std::string>& arguments);

} // namespace vitrine::test
