// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Typed errors. Throw them inside the program; `app/runner` converts them once into an exit code and one sentence.
// A message reads "FILE: FIELD: what, and what to do", without the program's name and without a final full stop.

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrine::base {

enum class ErrorKind { BadInput, Unsupported, OutOfMemory, Cancelled, DeviceFault, Internal };

/// The name that `--json` prints: "bad_input", "unsupported", "out_of_memory", ...
std::string_view errorKindName(ErrorKind kind);

/// The exit code of the process: 2 for bad input and for what is not supported, 3 for out of memory, 130 for cancelled
/// work, 1 for all others.
int exitCode(ErrorKind kind);

class Error : public std::exception {
public:
    Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

    ErrorKind kind() const noexcept { return kind_; }
    const std::string& message() const noexcept { return message_; }
    const char* what() const noexcept override { return message_.c_str(); }

private:
    ErrorKind kind_;
    std::string message_;
};

/// A file, an option or an experiment that the user gave is wrong.
class BadInput : public Error {
public:
    explicit BadInput(std::string message) : Error(ErrorKind::BadInput, std::move(message)) {}
};

/// The input is well formed, but this build or this part of the program cannot do it.
class Unsupported : public Error {
public:
    explicit Unsupported(std::string message) : Error(ErrorKind::Unsupported, std::move(message)) {}
};

/// The user stopped the work.
class Cancelled : public Error {
public:
    Cancelled() : Error(ErrorKind::Cancelled, "stopped by the user") {}
};

/// The device reported a fault. The process that used it must be started anew.
class DeviceFault : public Error {
public:
    explicit DeviceFault(std::string message) : Error(ErrorKind::DeviceFault, std::move(message)) {}
};

/// A mistake of ours.
class Internal : public Error {
public:
    explicit Internal(std::string message) : Error(ErrorKind::Internal, std::move(message)) {}
};

/// What a failed allocation knew. Sizes are bytes.
struct OutOfMemoryDetails {
    struct Holder {
        std::string category;
        std::string layer;
        std::uint64_t bytes = 0;
    };
    std::string what; ///< the tensor asked for, "grad_logits"
    std::uint64_t requested = 0;
    std::uint64_t budget = 0;
    std::uint64_t held = 0; ///< tracked and untracked bytes held when it failed
    std::uint64_t largestFree = 0;
    std::string category; ///< of what was asked for: "kv_cache"; empty: not known
    std::string arena;    ///< the arena with the most idle bytes: "arena of the prefill step"; empty: none
    std::uint64_t arenaBytes = 0;
    std::uint64_t arenaIdle = 0; ///< what no tensor had of it; `holders` has it too
    std::vector<Holder> holders; ///< largest first; an error keeps the first eight
};

/// A memory budget or the device itself is exhausted. Recoverable: the next run works.
class OutOfMemory : public Error {
public:
    explicit OutOfMemory(OutOfMemoryDetails details);
    const OutOfMemoryDetails& details() const noexcept { return details_; }

private:
    OutOfMemoryDetails details_;
};

} // namespace vitrine::base
