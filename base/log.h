// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The log sink. Messages are plain sentences; levels follow -v and -vv. Thread-safe.

#include <functional>
#include <string>
#include <string_view>

namespace vitrine::base {

enum class LogLevel { Debug, Info, Warning, Error };

/// Standard error prints messages of at least this level. Default: Warning.
void setLogLevel(LogLevel level);
LogLevel logLevel();

/// Also calls `sink` with every message (the GUI's Log panel, tests). An empty function removes it.
void setLogSink(std::function<void(LogLevel, std::string_view)> sink);

void log(LogLevel level, std::string_view message);
inline void logDebug(std::string_view message) {
    log(LogLevel::Debug, message);
}
inline void logInfo(std::string_view message) {
    log(LogLevel::Info, message);
}
inline void logWarning(std::string_view message) {
    log(LogLevel::Warning, message);
}

} // namespace vitrine::base
