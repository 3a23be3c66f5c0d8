// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Lines of text over a file descriptor: how two processes talk.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vitrine::base {

/// Reads whole lines. One thread; the descriptor stays its owner's.
class LineReader {
public:
    explicit LineReader(int descriptor) : descriptor_(descriptor) {}

    /// The next line without its end, or nothing when the other side is gone (what came of an unfinished line is
    /// dropped). Blocks. A line over 64 MiB ends the talk too: no message is that long.
    std::optional<std::string> next();
    /// Whether such a line ended the talk. The other side may still be there, and waits for somebody to read.
    bool wasTooLong() const { return tooLong_; }
    enum class Arrived : std::uint8_t { Input, Wake, Nothing };
    /// Waits until next() has something to read (a line may still be unfinished), or the descriptor `wake` can be read,
    /// or `most` has passed.
    Arrived wait(std::chrono::milliseconds most, int wake) const;

private:
    int descriptor_;
    std::string buffer_;
    std::size_t begin_ = 0; ///< of the next line in buffer_
    bool tooLong_ = false;
};

/// Writes a line and its end. False when the other side is gone, without a signal.
bool writeLine(int descriptor, std::string_view line);

} // namespace vitrine::base
