// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The one rule for files that a command writes: an output may replace an earlier output of its own kind, and nothing
// else. What is there is known by its first bytes, never by its name. Thread-safe.

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace vitrine::base {

/// What an output holds.
struct OutputKind {
    std::string_view name;  ///< as errors call it: "a picture (PNG)"
    std::string_view maker; ///< of safetensors files: what their metadata have under kMadeByKey
    /// Whether a file of another format is of this kind. `head` holds its first bytes, at most kOutputHeadBytes.
    bool (*isOwn)(std::string_view head) = nullptr;
};

inline constexpr std::size_t kOutputHeadBytes = 4096;

/// The key of a safetensors file's metadata that says which command made it.
inline constexpr std::string_view kMadeByKey = "made_by";

extern const OutputKind kPictureOutput; ///< PNG
extern const OutputKind kTableOutput;   ///< CSV with a head
extern const OutputKind kChromeOutput;  ///< chrome trace JSON
/// SQLite tables of an exported session, whose header has kTablesApplicationId.
extern const OutputKind kTablesOutput;
inline constexpr unsigned kTablesApplicationId = 0x56545442; ///< "VTTB"

/// Throws BadInput "PATH: what" when a file of another kind is at `path`, or at the end of the links that it is. Files
/// that are not there, empty files, folders, pipes and devices pass: those are the business of who opens them.
void requireReplaceable(const std::string& path, const OutputKind& kind);

/// Whether an output goes straight to what is at `path`: a device or a pipe, which a rename would replace by a file,
/// and what lies below /dev and /proc. Throws BadInput for a folder.
bool isWrittenInPlace(const std::string& path);

/// The name that an output gets when it is complete: of the file that a link leads to, so that the link stays.
std::string outputTarget(const std::string& path);

/// Writes beside `path` and renames: no reader sees half a file, and what was there stays when writing fails. Throws as
/// failWriting does, and what `write` throws. A device or a pipe is written in place. Ask requireReplaceable() first.
void writeOutput(const std::string& path, const std::function<void(std::ostream&)>& write);

/// Throws for a write that failed with `error` (an errno): Internal when the disk is full or broken or a limit of the
/// file's size is reached, BadInput for a place that cannot be written.
[[noreturn]] void failWriting(const std::string& path, int error);

} // namespace vitrine::base
