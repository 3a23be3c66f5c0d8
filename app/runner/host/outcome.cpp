// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/host/outcome.h"

#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace vitrine::app {

namespace {

using nlohmann::json;

RunOutcome failure(base::ErrorKind kind, std::string_view sentence) {
    RunOutcome outcome;
    outcome.errorKind = kind;
    outcome.exitCode = base::exitCode(kind);
    outcome.error = oneLine(sentence);
    switch (kind) {
    case base::ErrorKind::OutOfMemory:
        outcome.status = RunOutcome::Status::OutOfMemory;
        break;
    case base::ErrorKind::Cancelled:
        outcome.status = RunOutcome::Status::Cancelled;
        break;
    default:
        outcome.status = RunOutcome::Status::Failed;
    }
    return outcome;
}

json detailsJson(const base::OutOfMemoryDetails& details) {
    json holders = json::array();
    for (const auto& holder : details.holders) {
        holders.push_back({{"category", holder.category}, {"layer", holder.layer}, {"bytes", holder.bytes}});
    }
    return {{"what", details.what},
            {"requested_bytes", details.requested},
            {"budget_bytes", details.budget},
            {"held_bytes", details.held},
            {"largest_free_bytes", details.largestFree},
            {"holders", std::move(holders)},
            {"arena", details.arena},
            {"arena_bytes", details.arenaBytes},
            {"arena_idle_bytes", details.arenaIdle}};
}

} // namespace

std::string oneLine(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte == '\n' || byte == '\r' || byte == '\t') {
            if (!result.empty() && result.back() != ' ') {
                result += ' ';
            }
        } else {
            result += byte < 0x20 || byte == 0x7F ? '?' : c;
        }
    }
    while (!result.empty() && result.back() == ' ') {
        result.pop_back();
    }
    return result;
}

std::string_view outcomeStatusName(RunOutcome::Status status) {
    constexpr std::array<std::string_view, 4> kNames{"done", "failed", "out_of_memory", "cancelled"};
    return kNames.at(static_cast<std::size_t>(status));
}

json endedMessage(const RunOutcome& outcome) {
    return {{"type", "ended"},
            {"status", outcomeStatusName(outcome.status)},
            {"error", outcome.error},
            {"error_kind", outcome.exitCode == 0 ? "" : base::errorKindName(outcome.errorKind)},
            {"unsaved", outcome.unsaved},
            {"exit_code", outcome.exitCode},
            {"run", outcome.run},
            {"metrics", json::parse(outcome.metricsJson, nullptr, false)},
            {"kept_bytes", outcome.keptBytes}};
}

RunOutcome outcomeOf(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const base::Error& known) {
        return failure(known.kind(), known.message());
    } catch (const std::bad_alloc&) {
        return failure(base::ErrorKind::OutOfMemory,
                       "not enough host memory; use a smaller model or batch, or close other programs");
    } catch (const std::filesystem::filesystem_error& file) {
        return failure(base::ErrorKind::BadInput, fmt::format("{}: {}; check the path and its permissions",
                                                              file.path1().string(), file.code().message()));
    } catch (const std::system_error& system) {
        return failure(base::ErrorKind::Internal,
                       fmt::format("the system refused a thread, a file or memory: {}; close other programs and try "
                                   "again",
                                   system.code().message()));
    } catch (const json::exception& value) {
        return failure(base::ErrorKind::Internal,
                       fmt::format("a JSON value is not what the program took it for ({}); check the files that were "
                                   "given, and report this",
                                   value.what()));
    } catch (const std::logic_error& mistake) {
        return failure(base::ErrorKind::Internal,
                       fmt::format("a mistake of Vitrine ({}); report this with the command", mistake.what()));
    } catch (const std::exception& other) {
        return failure(base::ErrorKind::Internal, other.what());
    } catch (...) {
        return failure(base::ErrorKind::Internal, "an error of unknown type");
    }
}

json errorJson(const std::exception_ptr& error) {
    const RunOutcome outcome = outcomeOf(error);
    json result = {{"kind", base::errorKindName(outcome.errorKind)}, {"message", outcome.error}};
    try {
        std::rethrow_exception(error);
    } catch (const base::OutOfMemory& memory) {
        result.update(detailsJson(memory.details()));
    } catch (...) {
        // Only this kind carries details; its sentence stands in the result already.
        return result;
    }
    return result;
}

} // namespace vitrine::app
