// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A Python text with its name, places in it, and the error that speaks of such a place. The limits of what is read and
// evaluated stand here too.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace vitrine::engine {

inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;
inline constexpr int kMaxNesting = 64;                ///< of expressions, blocks and calls
inline constexpr std::int64_t kMaxSteps = 2'000'000;  ///< statements and expressions evaluated
inline constexpr std::int64_t kMaxElements = 1 << 24; ///< elements of all lists and tensors

struct PyPlace {
    std::string file;
    int line = 0;                   ///< from 1
    int column = 0;                 ///< from 1, in characters
    std::size_t begin = 0, end = 0; ///< bytes of the text
};

/// Something that a text uses is not known here, as what other modules define: it may exist where Python runs.
class NotKnownHere : public base::BadInput {
public:
    using BadInput::BadInput;
};

class PyError : public base::BadInput {
public:
    PyError(PyPlace place, std::string what, std::string excerpt, bool notKnownHere = false);
    const PyPlace& place() const noexcept { return place_; }
    const std::string& description() const noexcept { return what_; } ///< without file, place and caret
    const std::string& excerpt() const noexcept { return excerpt_; }  ///< the source line, and a caret under it
    bool notKnownHere() const noexcept { return notKnownHere_; }      ///< see NotKnownHere

private:
    PyPlace place_;
    std::string what_, excerpt_;
    bool notKnownHere_;
};

/// A text with its name: a file, or the editor's ("mask A").
struct PyFile {
    std::string name;
    std::string text;
};

} // namespace vitrine::engine
