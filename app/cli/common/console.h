// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Output of the command line. Results go to standard output. A failure (one line) and the progress bar go to standard
// error. The main thread and the thread of one run may use it.

#include <cstdint>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/stop.h"

namespace vitrine::app {

/// Options before or after the command.
struct GlobalOptions {
    bool json = false;
    int verbosity = 0; ///< 1: -v, 2: -vv
};

/// Gives the program standard streams where it was started without them (`>&-`): else the next file that it opens would
/// get their numbers, and an error would be written into that file. Call it before any file is opened.
void keepStandardStreams();

/// Writes and flushes. Throws Internal when that fails: the disk is full, or the reader went away (`| head`).
void printOut(std::string_view text);
/// One compact JSON value and a line end.
void printJson(const nlohmann::json& value);
/// Text as it is on standard error. That nobody can read it is no failure.
void printErrorText(std::string_view text);
/// "vitrine: error: MESSAGE" on standard error; nothing once the reader of standard output went away, who asked for an
/// end.
void printError(std::string_view message);

/// Reports a failure in both forms and returns its exit code.
int reportFailure(const GlobalOptions& options, const std::exception_ptr& error);

/// One line on a terminal's standard error that redraws itself; nothing elsewhere.
class ProgressBar {
public:
    ProgressBar();
    ~ProgressBar() { clear(); }
    ProgressBar(const ProgressBar&) = delete; // one line, one owner
    ProgressBar& operator=(const ProgressBar&) = delete;

    void show(std::string_view what, std::uint64_t done, std::uint64_t total);
    void clear();

private:
    bool terminal_;
    bool drawn_ = false;
};

/// Shows the progress of work as a bar.
class BarSink final : public base::ProgressSink {
public:
    void progress(std::string_view what, std::uint64_t done, std::uint64_t total) override {
        bar_.show(what, done, total);
    }
    void clear() { bar_.clear(); }

private:
    ProgressBar bar_;
};

} // namespace vitrine::app
