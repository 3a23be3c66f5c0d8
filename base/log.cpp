// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/log.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace vitrine::base {

namespace {

struct LogState {
    std::shared_ptr<spdlog::logger> logger;
    std::atomic<LogLevel> level{LogLevel::Warning};
    std::mutex sinkMutex;
    std::function<void(LogLevel, std::string_view)> sink;

    LogState()
        : logger(std::make_shared<spdlog::logger>("vitrine", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
        logger->set_pattern("vitrine: %l: %v");
        logger->set_level(spdlog::level::trace);
        logger->flush_on(spdlog::level::trace);
    }
};

/// Lives until the process ends, so that destructors of static objects may still log.
LogState& state() {
    static LogState* instance = new LogState;
    return *instance;
}

spdlog::level::level_enum spdlogLevel(LogLevel level) {
    switch (level) {
    case LogLevel::Debug:
        return spdlog::level::debug;
    case LogLevel::Info:
        return spdlog::level::info;
    case LogLevel::Warning:
        return spdlog::level::warn;
    case LogLevel::Error:
        return spdlog::level::err;
    }
    return spdlog::level::err;
}

} // namespace

void setLogLevel(LogLevel level) {
    state().level = level;
}

LogLevel logLevel() {
    return state().level;
}

void setLogSink(std::function<void(LogLevel, std::string_view)> sink) {
    LogState& s = state();
    const std::lock_guard lock(s.sinkMutex);
    s.sink = std::move(sink);
}

void log(LogLevel level, std::string_view message) {
    LogState& s = state();
    if (level >= s.level) {
        s.logger->log(spdlogLevel(level), spdlog::string_view_t(message.data(), message.size()));
    }
    // A sink that logs would wait for itself: what it says goes to standard error only.
    static thread_local bool inSink = false;
    if (inSink) {
        return;
    }
    // The lock is held while the sink runs, so that no call is under way once setLogSink has removed it.
    const std::lock_guard lock(s.sinkMutex);
    if (s.sink) {
        inSink = true;
        try {
            s.sink(level, message);
        } catch (...) {
            s.logger->log(spdlog::level::err, "the log's receiver failed");
        }
        inSink = false;
    }
}

} // namespace vitrine::base
